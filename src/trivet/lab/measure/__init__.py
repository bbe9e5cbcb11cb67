"""Measures of recall and the runs that produce them."""
