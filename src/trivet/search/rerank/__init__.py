"""Reranking as a step of recall; the models that do it are in models/rerank."""
