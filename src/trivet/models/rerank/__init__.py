"""Rerankers: a second look at the best candidates, each read together with the query."""
