"""The legs: each turns a question into a Ranking. `leg.py` says what a leg is, `registry.py` which ones there are."""
