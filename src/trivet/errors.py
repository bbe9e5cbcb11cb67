"""Every error Trivet raises on purpose. The message says what was wrong and what to do about it.

The docstrings are the table of exit statuses in docs/cli.md.
"""


class TrivetError(Exception):
    """Base of all errors that Trivet raises on purpose."""

    # What is wrong with an endpoint, where that is the reason: `hung` (silent too long), `down` (cannot answer now).
    fault: str | None = None


class InvalidInput(TrivetError):
    """A value given by the caller is not acceptable; nothing was written."""


class NotFound(TrivetError):
    """There is no such memory, concept, link or revision in this store."""


class Conflict(TrivetError):
    """The write contradicts what is stored; nothing was written."""


class Unauthorised(TrivetError):
    """The caller gave no key, or one that is not valid."""


class Forbidden(TrivetError):
    """The caller is known but may not do this."""


class TooMany(TrivetError):
    """The caller sent more requests than allowed; nothing was done."""


class StoreError(TrivetError):
    """The store cannot be opened, read or written."""


class Damaged(StoreError):
    """A part of what the store holds cannot be read."""


class Moving(StoreError):
    """The tenant is being moved to another database and takes no writes for a moment; nothing was written."""


class Moved(StoreError):
    """The tenant is at home in another database, which the message names; nothing was read or written."""


class UnknownFate(StoreError):
    """The store or the way to it was lost in the middle: the write may be done or not; look before you repeat it."""


class SecretError(TrivetError):
    """A key cannot be reached or made, or a sealed secret does not open with it."""


class RetiredKey(SecretError):
    """A rotation retired the key between the sealing of a secret and its write; nothing was written."""


class EmbedderError(TrivetError):
    """The embedder cannot be loaded, did not answer, or answered nonsense."""

    def __init__(self, message: str = "", fault: str | None = None) -> None:
        super().__init__(message)
        self.fault = fault


class RerankerError(TrivetError):
    """The reranker cannot be loaded, did not answer, or answered nonsense."""


class LegFailed(TrivetError):
    """A retrieval leg broke its promises (a NaN score, a missed time limit, ...)."""
