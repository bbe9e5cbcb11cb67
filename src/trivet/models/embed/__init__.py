"""Embedders: text to vectors, bundled, local or hosted."""

from trivet.models.embed.registry import Spec, load

__all__ = ["Spec", "load"]
