"""Endpoints of the HTTP server, one file per area."""
