"""Watches files for `ingest --watch`: signals a new run once changed files have been quiet for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

from watchfiles import Change, DefaultFilter, watch

from trivet.sources.files.vault import is_readable

# Editors save in several steps, and a checkout changes hundreds of files: one run for all of them.
QUIET_MILLISECONDS = 300
MAX_DELAY_MILLISECONDS = 3_000
# How often the wait is interrupted to see whether it should stop.
POLL_MILLISECONDS = 1_000


def changes(path: Path, stop: Event | None = None) -> Iterator[None]:
    """Yields once when the watch has begun, for earlier changes, and then after each burst of changes.

    For a single file its folder is watched: most programs save by replacing the file.
    """
    begun = False
    for found in watch(
        path if path.is_dir() else path.parent,
        watch_filter=_Notes(),
        debounce=MAX_DELAY_MILLISECONDS,
        step=QUIET_MILLISECONDS,
        rust_timeout=POLL_MILLISECONDS,
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=False,
        recursive=path.is_dir(),
    ):
        if found or not begun:
            begun = True
            yield


class _Notes(DefaultFilter):
    def __call__(self, change: Change, path: str) -> bool:
        """Readable files, and names without an ending: for a moved or deleted folder only its own name is reported."""
        return super().__call__(change, path) and (is_readable(path) or "." not in Path(path).name)
