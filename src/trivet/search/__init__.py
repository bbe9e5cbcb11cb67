"""Retrieval: legs, rank fusion, reranking, relevance, and external systems."""
