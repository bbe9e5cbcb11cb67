"""What a server tells of a failure: to callers without places and secrets, to its log without any text."""

from __future__ import annotations

import logging
import traceback

from trivet.errors import SecretError, TrivetError
from trivet.secrets.detect import without_secrets

logger = logging.getLogger("trivet.serve")

SECRET_KEYS_UNAVAILABLE = "A key of secrets cannot be used, so nothing was read or written. `trivet doctor` tells the owner why."


def public_message(error: TrivetError) -> str:
    """The error as a caller may see it. Where keys are kept (a file, the address of a vault) is the owner's to know."""
    if isinstance(error, SecretError):
        logger.error("%s", error)
        return SECRET_KEYS_UNAVAILABLE
    return without_secrets(str(error))


def log_failure(where: str, error: BaseException) -> None:
    """Where it happened, and not its message, which may quote memories."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error(
        "%s failed with %s\nTraceback (most recent call last):\n%s",
        where,
        type(error).__name__,
        frames,
    )


def error_text(error: Exception, where: str) -> str:
    """Our own errors teach; of any other the caller learns its kind, and the log all of it."""
    if isinstance(error, TrivetError):
        return public_message(error)
    log_failure(where, error)
    return f"Trivet failed at this ({type(error).__name__}); the server's log has the details. Other calls go on."
