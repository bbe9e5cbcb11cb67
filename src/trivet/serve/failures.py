"""What a server tells of a failure: to callers without places and secrets, to its log without any text."""

from __future__ import annotations

import logging
import traceback

from trivet.errors import SecretError, TrivetError
from trivet.secrets.detect import without_secrets

logger = logging.getLogger("trivet.serve")

KEYS_FAIL = "A key of secrets cannot be used, so nothing was read or written. `trivet doctor` tells the owner why."


def told(error: TrivetError) -> str:
    """The error as a caller may see it. Where keys are kept (a file, the address of a vault) is the owner's to know."""
    if isinstance(error, SecretError):
        logger.error("%s", error)
        return KEYS_FAIL
    return without_secrets(str(error))


def log_failure(where: str, error: BaseException) -> None:
    """Where it happened, and not its message, which may quote memories."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s failed with %s\nTraceback (most recent call last):\n%s", where, type(error).__name__, frames)
