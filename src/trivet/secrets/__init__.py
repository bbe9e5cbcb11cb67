"""What keeps words from being seen: masks of sensitive memories, detection of secrets, and their encryption."""

from trivet.secrets.mask import MASK, masked

__all__ = ["MASK", "masked"]
