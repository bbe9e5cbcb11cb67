"""Runs, measures, and comparisons of recipes."""
