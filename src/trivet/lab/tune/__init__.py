"""Tunes recall on the user's own store."""
