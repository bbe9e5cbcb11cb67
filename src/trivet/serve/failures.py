"""Logs an unexpected failure: where it happened, and not its message, which may quote memories."""

from __future__ import annotations

import logging
import traceback

logger = logging.getLogger("trivet.serve")


def log_failure(where: str, error: BaseException) -> None:
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s failed with %s\nTraceback (most recent call last):\n%s", where, type(error).__name__, frames)
