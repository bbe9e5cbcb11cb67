"""Whether there is a store where the settings say; if not, the error names the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from trivet.errors import StoreError
from trivet.settings import Settings, default_store
from trivet.settings.address import is_file

# How a SQLite file begins, and where it says whose it is.
_SQLITE = b"SQLite format 3\0"
_OWNER = slice(68, 72)
# "TRVT": tells a Trivet store from any other SQLite file, so that we never write into a stranger's database.
APPLICATION_ID = 0x54525654
# A folder with more files than this is not where somebody keeps stores.
FILES_LOOKED_AT = 500


def check_exists(settings: Settings) -> None:
    """For callers who only read: a mistyped path must not become an empty store."""
    if missing := missing_store(settings):
        raise StoreError(missing)


def missing_store(settings: Settings) -> str | None:
    """What to say if the file that the settings name is not there; None if it is, or is no file.

    The default store is nobody's typing; it is made by whoever comes first. The file of another tenant is its server's.
    """
    path = Path(settings.path).expanduser()
    if not is_file(settings.path) or path.exists() or path == default_store() or settings.tenant != "default":
        return None
    nearest = nearest_store(path)
    meant = f" The nearest there is: {nearest}." if nearest else ""
    return f"There is no store at {path}.{meant} Storing the first memory there makes one."


def nearest_store(path: Path) -> Path | None:
    """Of the stores in the same folder and the default one, that whose path reads most alike."""
    known = {str(file): file for file in [*_stores_in(path.parent), default_store()] if is_store(file)}
    found = difflib.get_close_matches(str(path), known, n=1, cutoff=0)
    return known[found[0]] if found else None


def is_store(file: Path) -> bool:
    """Whether the file is a Trivet store, by its first bytes."""
    try:
        with file.open("rb") as opened:
            head = opened.read(_OWNER.stop)
    except OSError:  # not there, or not for us to read: not what the caller meant
        return False
    return head.startswith(_SQLITE) and head[_OWNER] == APPLICATION_ID.to_bytes(4, "big")


def _stores_in(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (file for file in islice(folder.iterdir(), FILES_LOOKED_AT) if file.is_file())
