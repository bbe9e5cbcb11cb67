"""Other retrieval systems: asking them within bounds, and reading what they say without trusting it."""
