"""The commands, grouped in modules by task."""
