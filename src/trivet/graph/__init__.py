"""The concept graph: what memories speak of, how that connects them, and the walk that follows the connections."""
