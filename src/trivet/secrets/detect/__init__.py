"""Finding secrets in a text: `find` says what kind each is and where it stands."""

from trivet.secrets.detect.find import SecretSpan, find, without_secrets

__all__ = ["SecretSpan", "find", "without_secrets"]
