"""The measuring bench: datasets in one plain layout, measures, and honest comparison of two ways to recall."""
