"""Finding secrets in a text: `find` says what kind each is and where it stands."""

from trivet.secrets.detect.find import Found, find

__all__ = ["Found", "find"]
