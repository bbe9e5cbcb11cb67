"""Whether the files of an open store are still where they were: a program that tidies up may take one away.

SQLite keeps the newest writes in a log beside the store (-wal) and an index of it that all processes share (-shm). If
one is deleted while it is open, this process goes on writing into a file that nobody else can find.
"""

from __future__ import annotations

from pathlib import Path

COMPANIONS = ("-wal", "-shm")
Identity = tuple[int, int]


class FilesInPlace:
    """What each file was when the store was opened. While it is open, SQLite itself replaces none of them."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._noted: dict[Path, Identity] = {}

    def note_store(self) -> None:
        self._note(self._store)

    def note_companions(self) -> None:
        """After the first read, which makes them."""
        for suffix in COMPANIONS:
            self._note(self._store.with_name(self._store.name + suffix))

    def gone(self) -> Path | None:
        """The first file that was deleted or replaced."""
        return next((file for file, identity in self._noted.items() if _identity(file) != identity), None)

    def log_can_be_saved(self) -> bool:
        """Whether the log or its index is only missing: where another process has made a new one, it has the say."""
        return _identity(self._store) is not None and all(
            _identity(file) in (None, identity) for file, identity in self._noted.items()
        )

    def _note(self, file: Path) -> None:
        found = _identity(file)
        if found is not None:
            self._noted[file] = found


def taken_away(file: Path, lost: str) -> str:
    return f"{file} was deleted or replaced while it was open. {lost}{'open' if lost else 'Open'} the store again."


def _identity(file: Path) -> Identity | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
