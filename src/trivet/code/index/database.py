"""The index file of a repository: facts of files by content, and the listing of each root.

All worktrees and branches share it. A damaged file is replaced.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from trivet.code.index.facts import ANALYSER_VERSION, FileFacts
from trivet.code.types import LeftOut
from trivet.common.files import private_folder
from trivet.errors import Damaged, StoreError

logger = logging.getLogger("trivet.code")

SCHEMA_VERSION = 1
KEY_BYTES = 16
# Seconds to wait: another process may be writing a batch of files.
PATIENCE_SECONDS = 30.0
# The fastest level shrinks facts to a third; slower ones gain little.
COMPRESSION = 1
# Values per statement that every SQLite version in use accepts.
MAX_SQL_VALUES = 500

SCHEMA = """
CREATE TABLE file (key BLOB PRIMARY KEY, facts BLOB, reason TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE tree (root TEXT PRIMARY KEY, listing BLOB NOT NULL, seen REAL NOT NULL) WITHOUT ROWID;
"""

_encode = msgspec.msgpack.encode
_facts = msgspec.msgpack.Decoder(FileFacts)


def key_of(path: str, blob: str, encoder: str) -> bytes:
    """Return the key of facts, which follow from path, bytes, analyzer and encoder."""
    made_from = f"{ANALYSER_VERSION}\n{encoder}\n{path}\n{blob}"
    return blake2b(made_from.encode(errors="replace"), digest_size=KEY_BYTES).digest()


class IndexFile:
    """An open index file, for one thread at a time."""

    def __init__(self, file: Path) -> None:
        private_folder(file.parent)
        self.file = file
        self._connection = _opened(file)

    def close(self) -> None:
        self._connection.close()

    def recreate(self) -> None:
        self._connection.close()
        _delete_database(self.file)
        self._connection = _opened(self.file)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Commit everything written in the block, or nothing."""
        with _explained(self.file):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()

    def unknown(self, keys: Iterable[bytes]) -> set[bytes]:
        wanted = set(keys)
        with _explained(self.file):
            rows = self._some("SELECT key FROM file WHERE key IN ({})", list(wanted))
            return wanted - {key for (key,) in rows}

    def put_facts(self, key: bytes, facts: FileFacts | LeftOut) -> None:
        if isinstance(facts, LeftOut):
            row: tuple[bytes, bytes | None, str] = (key, None, facts.reason)
        else:
            row = (key, zlib.compress(_encode(facts), COMPRESSION), "")
        self._connection.execute("INSERT OR REPLACE INTO file VALUES (?, ?, ?)", row)

    def facts(self, keys: Sequence[bytes]) -> dict[bytes, FileFacts | str]:
        """Return the facts of known keys, or as a string why the file is left out."""
        with _explained(self.file):
            rows = self._some("SELECT key, facts, reason FROM file WHERE key IN ({})", keys)
            return {
                key: _facts.decode(zlib.decompress(facts)) if facts else reason
                for key, facts, reason in rows
            }

    def put_tree(self, root: str, listing: bytes, seen: float) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO tree VALUES (?, ?, ?)", (root, listing, seen)
        )

    def tree(self, root: str) -> bytes | None:
        with _explained(self.file):
            row = self._connection.execute(
                "SELECT listing FROM tree WHERE root = ?", (root,)
            ).fetchone()
            return row[0] if row else None

    def trees(self) -> list[tuple[str, bytes, float]]:
        with _explained(self.file):
            return self._connection.execute("SELECT root, listing, seen FROM tree").fetchall()

    def forget_tree(self, root: str) -> None:
        self._connection.execute("DELETE FROM tree WHERE root = ?", (root,))

    def keep_only(self, keys: Iterable[bytes]) -> int:
        self._connection.execute("CREATE TEMP TABLE kept (key BLOB PRIMARY KEY) WITHOUT ROWID")
        self._connection.executemany(
            "INSERT OR IGNORE INTO kept VALUES (?)", [(key,) for key in keys]
        )
        gone = self._connection.execute(
            "DELETE FROM file WHERE key NOT IN (SELECT key FROM kept)"
        ).rowcount
        self._connection.execute("DROP TABLE kept")
        return gone

    def count(self) -> int:
        with _explained(self.file):
            return int(self._connection.execute("SELECT count(*) FROM file").fetchone()[0])

    def _some(self, query: str, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(keys), MAX_SQL_VALUES):
            part = keys[start : start + MAX_SQL_VALUES]
            yield from self._connection.execute(query.format(", ".join("?" * len(part))), part)


def _opened(file: Path) -> sqlite3.Connection:
    try:
        return _prepared(file)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "not a database" not in str(error):
            raise StoreError(
                f"Cannot open the code index {file} ({error}). "
                "Check that the disk is not full or read-only."
            ) from None
        logger.warning("The code index %s is damaged (%s). Rebuilding it.", file, error)
        _delete_database(file)
        return _prepared(file)


def _prepared(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        file, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    # A machine crash may lose the last batch, which is then rebuilt; it cannot damage the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
        return connection
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall():
            connection.execute(f'DROP TABLE "{table}"')
        for statement in filter(None, map(str.strip, SCHEMA.split(";"))):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.commit()
    return connection


def _delete_database(file: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreError(
            f"The code index {file} failed ({error}). "
            "Check that the disk is not full and the file is not read-only."
        ) from error
    except (sqlite3.Error, zlib.error, msgspec.MsgspecError) as error:
        raise Damaged(
            f"The code index {file} is damaged ({error}). Delete it: the next search rebuilds it."
        ) from error


# Keep facts up to this many times the tree's own, so that switching branches costs nothing.
MAX_UNUSED_SHARE = 4.0
MIN_FACTS = 2_000


def tidy(index: IndexFile, keys: Iterable[bytes]) -> int:
    """Delete facts that this tree does not use, once they are most of the file."""
    used = set(keys)
    if index.count() <= max(MIN_FACTS, MAX_UNUSED_SHARE * len(used)):
        return 0
    with index.writing():
        for root, _, _ in index.trees():
            if not Path(root).is_dir():
                index.forget_tree(root)
        return index.keep_only(used)
