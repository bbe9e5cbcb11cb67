"""Small helpers shared by every package; none knows memories."""
