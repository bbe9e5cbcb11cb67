"""Finding secrets in a text: `find` says what kind each is and where it stands."""

from trivet.secrets.detect.find import SecretSpan, apart_from, find, without_secrets

__all__ = ["SecretSpan", "apart_from", "find", "without_secrets"]
