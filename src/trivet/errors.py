"""All errors that Trivet raises on purpose; messages say what was wrong and what to do.

docs/cli.md shows the class docstrings, so keep each on one line.
"""


class TrivetError(Exception):
    """Any error that Trivet raises on purpose."""

    # Set when an endpoint is at fault: `hung` (no answer in time) or `down` (cannot answer now).
    fault: str | None = None


class InvalidInput(TrivetError):
    """The caller gave an unacceptable value; nothing was written."""


class NotFound(TrivetError):
    """The store holds no such memory, concept, link or revision."""


class Conflict(TrivetError):
    """The write contradicts stored data; nothing was written."""


class Unauthorised(TrivetError):
    """The caller gave no key or an invalid one."""


class Forbidden(TrivetError):
    """The caller is authenticated but lacks the right."""


class TooMany(TrivetError):
    """The caller exceeded a rate limit; nothing was done."""


class StoreError(TrivetError):
    """The store cannot be opened, read or written."""


class Damaged(StoreError):
    """Some stored data cannot be read."""


class Moving(StoreError):
    """The tenant is moving to another database and rejects writes; nothing was written."""


class Moved(StoreError):
    """The tenant lives in the database that the message names; nothing was read or written."""


class UnknownFate(StoreError):
    """The connection broke during a write that may or may not be done; check before retrying."""


class SecretError(TrivetError):
    """A secrets key is unreachable or cannot be created, or does not open a sealed secret."""


class RetiredKey(SecretError):
    """A rotation retired the key while a secret was being written; nothing was written."""


class EmbedderError(TrivetError):
    """The embedder failed to load, did not answer or returned an unusable answer."""

    def __init__(self, message: str = "", fault: str | None = None) -> None:
        super().__init__(message)
        self.fault = fault


class RerankerError(TrivetError):
    """The reranker failed to load, did not answer or returned an unusable answer."""


class LegFailed(TrivetError):
    """A retrieval leg violated its contract, for example by a NaN score or a timeout."""
