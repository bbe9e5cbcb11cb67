"""Models that Trivet runs or asks: embedders, rerankers and chat endpoints. The bundled weights are in weights/."""
