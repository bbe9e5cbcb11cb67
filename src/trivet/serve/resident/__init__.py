"""One process per user that keeps models and indexes in memory, and its clients."""
