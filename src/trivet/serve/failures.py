"""How a failure that nobody expected is logged: where it happened, and not what it said, which may quote memories."""

from __future__ import annotations

import logging
import traceback

logger = logging.getLogger("trivet.serve")


def log_failure(where: str, error: BaseException) -> None:
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s failed with %s\nTraceback (most recent call last):\n%s", where, type(error).__name__, frames)
