"""Secrets: detection in text, encryption, and masks of sensitive memories."""

from trivet.secrets.masking import MASK, masked

__all__ = ["MASK", "masked"]
