"""Cells: several databases, each with tenants of its own, between which a tenant can move while it is used."""
