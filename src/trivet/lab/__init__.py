"""The lab measures recall: datasets in one plain layout, measures, and paired comparisons of two ways to recall."""
