"""Datasets to measure on, and tools to judge new ones."""
