"""Secrets: masks of sensitive memories, detection of secrets in text, and their encryption."""

from trivet.secrets.masking import MASK, masked

__all__ = ["MASK", "masked"]
