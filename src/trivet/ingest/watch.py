"""Ingesting again whenever files change, once they have been quiet for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

from watchfiles import Change, DefaultFilter, watch

from trivet.ingest.formats import is_readable

# Editors save in several steps, and a checkout changes hundreds of files: one run for all of them.
QUIET_MILLISECONDS = 300
LONGEST_MILLISECONDS = 3_000


def changes(root: Path, stop: Event | None = None) -> Iterator[None]:
    """Yields after each burst of changes under the root that a reader could care about."""
    for _ in watch(
        root,
        watch_filter=_Notes(),
        debounce=LONGEST_MILLISECONDS,
        step=QUIET_MILLISECONDS,
        stop_event=stop,
        raise_interrupt=False,
        recursive=True,
    ):
        yield


class _Notes(DefaultFilter):
    def __call__(self, change: Change, path: str) -> bool:
        """Of folders we hear only that they moved or went, and their names have no ending."""
        return super().__call__(change, path) and (is_readable(path) or "." not in Path(path).name)
