"""File watching for `ingest --watch`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

from watchfiles import Change, DefaultFilter, watch

from trivet.sources.files.vault import is_readable

# One run for all steps of a save, and all files of a checkout.
QUIET_MILLISECONDS = 300
MAX_DELAY_MILLISECONDS = 3_000
POLL_MILLISECONDS = 1_000


def changes(path: Path, stop: Event | None = None) -> Iterator[None]:
    """Yield once at the start, for earlier changes, and after each burst of changes.

    A single file is watched through its folder, as most programs save by replacing the file.
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
        return super().__call__(change, path) and (is_readable(path) or "." not in Path(path).name)
