"""Evaluation of code search on source trees with graded files."""
