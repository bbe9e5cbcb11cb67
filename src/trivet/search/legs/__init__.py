"""The legs: each turns a question into a Ranking. They know the store and the embedder, not each other."""
