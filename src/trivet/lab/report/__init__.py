"""Reports and plots of measured arms."""
