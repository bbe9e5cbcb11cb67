"""Datasets: what is measured on, and how judged sets are made."""
