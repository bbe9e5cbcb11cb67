"""Embedders: text to vectors, from the bundled model, a folder or a hosted service."""

from trivet.models.embed.registry import load
from trivet.models.embed.spec import Spec

__all__ = ["Spec", "load"]
