"""Error texts: without locations and secrets for callers, without user data for the log."""

from __future__ import annotations

import logging
import traceback

from trivet.errors import SecretError, TrivetError
from trivet.secrets.detect import without_secrets

logger = logging.getLogger("trivet.serve")

SECRET_KEYS_UNAVAILABLE = (
    "A secret key is unavailable, so nothing was read or written. "
    "The owner can run `trivet doctor` to see why."
)


def public_message(error: TrivetError) -> str:
    """Return the text for the caller; only the owner's log says where keys are."""
    if isinstance(error, SecretError):
        logger.error("%s", error)
        return SECRET_KEYS_UNAVAILABLE
    return without_secrets(str(error))


def log_failure(where: str, error: BaseException) -> None:
    """Log the traceback without the message, which may quote memories."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error(
        "%s failed with %s\nTraceback (most recent call last):\n%s",
        where,
        type(error).__name__,
        frames,
    )


def error_text(error: Exception, where: str) -> str:
    if isinstance(error, TrivetError):
        return public_message(error)
    log_failure(where, error)
    return (
        f"The call failed unexpectedly ({type(error).__name__}); the server's log has the details. "
        "Other calls still work."
    )
