"""Reports on saved runs."""
