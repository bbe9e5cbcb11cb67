"""How likely a hit is to be relevant: a probability that means the same from query to query."""
