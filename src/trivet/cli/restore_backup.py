"""Putting a backup in a store's place: checked first, whole or not at all, and nothing is deleted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from trivet import Trivet
from trivet.errors import Conflict, InvalidInput, StoreError
from trivet.memory.secrets import note_keys
from trivet.private_folder import private_folder
from trivet.settings.existing_store import APPLICATION_ID

# SQLite keeps the newest writes in the first until they are folded into the store.
COMPANIONS = ("-wal", "-shm", "-journal")


def put_back(backup: Path, store: Path, force: bool) -> Path | None:
    """Makes `store` a copy of `backup`. Returns where the store that was there has been moved, if there was one."""
    if not backup.is_file():
        raise InvalidInput(f"{backup} is not a file. Name a backup made by `trivet backup`.")
    if store.exists() and not force:
        raise Conflict(f"There is a store at {store} already. Say --force to move it aside, or give another --path.")
    partial = store.with_name(store.name + ".partial")
    try:
        private_folder(store.parent)
        _remove(partial)
        _copy(backup, partial)
        _check(partial, backup)
        aside = _move_aside(store) if store.exists() else None
        partial.rename(store)
    except OSError as error:
        raise StoreError(f"{backup} cannot be put back: {error.strerror} ({error.filename}).") from None
    finally:
        _remove(partial)
    with Trivet.open(store, embedder="none", background=False) as memory:
        note_keys(memory.engine)
    return aside


def _copy(backup: Path, partial: Path) -> None:
    """By SQLite itself, which also takes writes that are still in a log beside the backup."""
    partial.touch(mode=0o600)
    try:
        with (
            closing(sqlite3.connect(f"{backup.resolve().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(partial)) as copy,
        ):
            if source.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raise StoreError(f"{backup} is not a Trivet store. Nothing was changed.")
            source.backup(copy)
    except sqlite3.Error as error:
        raise StoreError(f"{backup} is not a Trivet store or is damaged ({error}). Nothing was changed.") from None


def _check(partial: Path, backup: Path) -> None:
    """Opens the copy as a store, which refuses a newer schema, and looks at everything a store is made of."""
    with Trivet.open(partial, embedder="none", background=False) as memory:
        problems = [finding for finding in memory.doctor() if not finding.ok and finding.check == "database file"]
    if problems:
        raise StoreError(f"{backup} is damaged ({problems[0].detail}). Nothing was changed.")


def _move_aside(store: Path) -> Path:
    """The log goes first: a store beside the log of another is damage, a log without its store is not."""
    _fold_log(store)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    aside = store.with_name(f"{store.name}.before-{moment}")
    for suffix in COMPANIONS:
        companion = Path(f"{store}{suffix}")
        if companion.exists():
            companion.rename(f"{aside}{suffix}")
    store.rename(aside)
    return aside


def _fold_log(store: Path) -> None:
    """Best effort: a damaged store cannot be folded, and moving it aside as it is keeps every chance to mend it."""
    try:
        with closing(sqlite3.connect(store)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:
        return


def _remove(partial: Path) -> None:
    for suffix in ("", *COMPANIONS):
        Path(f"{partial}{suffix}").unlink(missing_ok=True)
