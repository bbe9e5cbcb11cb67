"""Sync of a laptop's store with its team's server (docs/sync.md)."""
