"""Tenants that move between four databases while in use, while participants are killed."""
