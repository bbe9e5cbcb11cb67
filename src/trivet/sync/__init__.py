"""A laptop's store that follows its team's server, and loses nothing on the way (docs/sync.md)."""
