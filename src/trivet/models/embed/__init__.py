"""Embedders: text to vectors, from the bundled model, a folder or a hosted service."""

from trivet.models.embed.registry import Spec, load

__all__ = ["Spec", "load"]
