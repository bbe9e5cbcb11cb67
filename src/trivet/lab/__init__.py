"""Measurement of recall: datasets, measures, and paired comparisons of recipes."""
