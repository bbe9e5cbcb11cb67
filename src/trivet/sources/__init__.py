"""Sources of memories: the user's files and other memory systems."""
