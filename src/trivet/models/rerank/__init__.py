"""Rerankers: models that read candidates together with the query."""
