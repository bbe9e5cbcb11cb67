"""Embedders: text to vectors, from the bundled model, a folder or a hosted service."""

from trivet.embed.registry import load
from trivet.embed.spec import Spec

__all__ = ["Spec", "load"]
