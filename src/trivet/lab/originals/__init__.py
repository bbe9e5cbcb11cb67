"""Readers of public test collections in their original form, one file a collection; catalog.py lists them by name."""
