"""Tenants that move between four databases while they are used, and everything that takes part is killed on the way."""
