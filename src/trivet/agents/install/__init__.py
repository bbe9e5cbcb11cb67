"""Installation into coding agents' settings, previewed first and undone exactly."""
