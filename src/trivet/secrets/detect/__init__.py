"""Detection of secrets in a text: `find` returns the kind and place of each."""

from trivet.secrets.detect.scan import SecretSpan, find, without_overlaps, without_secrets

__all__ = ["SecretSpan", "find", "without_overlaps", "without_secrets"]
