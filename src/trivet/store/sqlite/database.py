"""One SQLite file as a store's database: a reader per thread, one writer at a time."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trivet.common.bounded_cache import MIB
from trivet.common.clock import now
from trivet.common.files import private_folder
from trivet.errors import Damaged, StoreError
from trivet.settings.locations import APPLICATION_ID
from trivet.store.relational.database import (
    ERASING,
    UUID_LENGTH,
    FollowerDatabase,
    IdsByKey,
    Parameters,
    ViewerDatabase,
    Weights,
)
from trivet.store.relational.index.index_files import PENDING, MappedIndex
from trivet.store.relational.index.postings import Postings, postings_from_occurrences
from trivet.store.sql_files import latest_version, steps
from trivet.store.sqlite.connections import (
    PRAGMAS,
    QUERIES,
    Connection,
    Connections,
    FileIdentityCheck,
    explain_error,
    is_damage,
    missing_file_message,
)
from trivet.store.sqlite.indexes import SqliteIndexFiles
from trivet.types import LOCAL

logger = logging.getLogger("trivet.store.sqlite")

FOLDER = Path(__file__).parent
SCHEMA_VERSION = latest_version(FOLDER)
LOG_PENDING = (
    "Its words are still in the write-ahead log: an earlier reader has not ended. "
    "They are removed when it ends."
)
LARGE_PENDING = (
    "Its words may remain in unused parts of the file, which is so large that rewriting it would "
    "block other writers. Run `trivet doctor` to rewrite it."
)
# A caller of a purge waits less than a tenth of a second for this much; the worker does the rest in
# a second or two. VACUUM runs in memory.
INLINE_VACUUM_MAX_BYTES = 8 * MIB
WORKER_VACUUM_MAX_BYTES = 256 * MIB
CHECKPOINT_TIMEOUT_MS = 200
EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"
IDS_BATCH = 50_000
# Pause between retries of what SQLite's busy timeout does not cover.
RETRY_SECONDS = 0.01

NONE: Parameters = {}


class Database:
    sql = QUERIES
    schema = SCHEMA_VERSION
    generation = 0
    viewer = None

    def __init__(self, path: Path, busy_time_limit_ms: int) -> None:
        self.path = path
        self.name = str(path)
        self._busy_time_limit_ms = busy_time_limit_ms
        self._local = threading.local()
        self._connections = Connections(self._connect)
        self._write_lock = threading.RLock()
        self._files = FileIdentityCheck(path)
        self.index_files = SqliteIndexFiles(self, path)
        with self.errors():
            self._prepare()

    def read(self) -> Connection:
        return self._connections.mine()

    read_unrestricted = read

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with self._write_lock, self.errors():
            connection = self.read()
            if connection.in_transaction:  # nested: join the outer transaction
                yield connection
                return
            self.check_in_place()
            self._local.erases = False
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise
            self._check_committed()
            if self._local.erases:
                self._erase(INLINE_VACUUM_MAX_BYTES)

    take = write

    @contextmanager
    def erasing(self) -> Iterator[Connection]:
        with self.write() as connection:
            yield connection
            # Merging the segments removes the purged words from the file.
            connection.execute(self.sql("lexical")["optimize"])
            connection.execute(
                self.sql("maintenance")["set_meta"], {"name": ERASING, "value": now()}
            )
            self.index_files.disown(connection)
            self._local.erases = True  # `write` does the rest after the outermost commit

    def finish_erasing(self, of_any_size: bool = False) -> str | None:
        """Rewrite the file and empty its log.

        Rows moved between pages leave copies in unused space.
        """
        return self._erase(None if of_any_size else WORKER_VACUUM_MAX_BYTES)

    def _erase(self, up_to: int | None) -> str | None:
        with self._write_lock, self.errors():
            pending = None if self.index_files.remove_disowned() else PENDING
            marked = self._marked()
            if marked is None:
                return pending
            large = up_to is not None and self.size() > up_to
            if not (large or self._done("VACUUM")) or not self._done(EMPTY_LOG):
                return LOG_PENDING
            if large:
                return LARGE_PENDING
            self.check_in_place()
            # Keeps the mark of a later purge.
            self.read().execute(
                self.sql("maintenance")["drop_meta"], {"name": ERASING, "value": marked}
            )
            return pending

    def pending_erasure(self) -> str | None:
        if self.index_files.disowned():
            return PENDING
        if self._marked() is None:
            return None
        return LARGE_PENDING if self.size() > WORKER_VACUUM_MAX_BYTES else LOG_PENDING

    def _marked(self) -> str | None:
        with self.errors():
            row = (
                self.read()
                .execute(self.sql("maintenance")["get_meta"], {"name": ERASING})
                .fetchone()
            )
        return None if row is None else str(row[0])

    def _done(self, statement: str) -> bool:
        """Return whether it succeeded; a checkpoint returns whether it was busy."""
        connection = self.read()
        connection.execute(f"PRAGMA busy_timeout = {CHECKPOINT_TIMEOUT_MS}")
        try:
            answer = connection.execute(statement).fetchone()
        except sqlite3.OperationalError as error:  # retried later
            logger.warning("%s did not succeed on %s yet: %s", statement, self.path, error)
            return False
        finally:
            connection.execute(f"PRAGMA busy_timeout = {self._busy_time_limit_ms}")
        return answer is None or not answer[0]

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        with self.errors():
            connection = self.read()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")

    def moment(self, change: int) -> AbstractContextManager[None]:
        """Return at once: a statement always sees the latest commit."""
        return nullcontext()

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            gone = self._files.gone()
            text = (
                missing_file_message(gone, "")
                if gone
                else explain_error(error, self.path, self._busy_time_limit_ms)
            )
            kind = Damaged if not gone and is_damage(str(error)) else StoreError
            raise kind(text) from error

    def check_in_place(self) -> None:
        """Raise if the file was replaced: writes into it would be lost."""
        gone = self._files.gone()
        if gone is not None:
            self._save_log()
            raise StoreError(missing_file_message(gone, "Nothing was written; "))

    def _check_committed(self) -> None:
        gone = self._files.gone()
        if gone is not None and not self._save_log():
            raise StoreError(missing_file_message(gone, "The last write may be lost; "))

    def _save_log(self) -> bool:
        """Fold a removed log, which this process still has open, into the store."""
        return self._files.log_can_be_saved() and self._done(EMPTY_LOG)

    def integers(self, sql: str, parameters: Parameters = NONE) -> NDArray[np.int64]:
        with self.errors():
            return np.fromiter((row[0] for row in self.read().execute(sql, parameters)), np.int64)

    def batches(self, sql: str, rows: int) -> Iterator[Sequence[sqlite3.Row]]:
        every = iter(self.read().execute(sql))
        while some := list(islice(every, rows)):
            yield some

    def read_postings(self, terms: Sequence[str], weights: Weights) -> dict[str, Postings]:
        """Read from FTS5 and score in memory.

        Its bm25() clamps the IDF of common words and takes 20 to 90 ms at 100,000 memories.
        """
        sql = self.sql("lexical")["postings"]
        return {
            term: postings_from_occurrences(self.integers(sql, {"term": term}), weights)
            for term in terms
        }

    def mapped_index(self) -> MappedIndex | None:
        return self.index_files.current()

    def all_ids(self, fresh: bool = False) -> IdsByKey | None:
        """Use the index file only: in a small store a lookup takes microseconds."""
        if fresh:
            return self._read_ids()
        index = self.mapped_index()
        return None if index is None else index.ids()

    def _read_ids(self) -> IdsByKey:
        highest = int(self.read().execute(self.sql("visible")["highest_key"]).fetchone()[0])
        found = np.zeros(highest + 1, f"S{UUID_LENGTH}")
        for rows in self.batches(self.sql("memories")["all_ids"], IDS_BATCH):
            keys, ids = zip(*rows, strict=True)
            found[list(keys)] = ids
        return found

    def encode_vector(self, vector: NDArray[np.float16]) -> bytes:
        return vector.tobytes()

    def seen_by(self, user: str) -> ViewerDatabase:
        return ViewerDatabase(self, user)

    def as_follower(self) -> FollowerDatabase:
        return FollowerDatabase(self, LOCAL)

    def size(self) -> int:
        """Include the write-ahead log."""
        parts = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(part.stat().st_size for part in parts if part.exists())

    def close(self) -> None:
        self._connections.close()

    def _connect(self) -> Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=self._busy_time_limit_ms / 1000,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
        )
        connection.row_factory = sqlite3.Row
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _prepare(self) -> None:
        try:
            private_folder(self.path.parent)
            if not self.path.exists():
                self.path.touch(mode=0o600)
        except OSError as error:
            raise StoreError(
                f"The store {self.path} cannot be created: {error.strerror}. Give another path."
            ) from None
        if not self.path.is_file():
            raise StoreError(
                f"{self.path} is not a file but a folder or a device. Give the path of a file."
            )
        self._files.note_store()
        connection = self.read()
        version = self._version(connection)
        if version < SCHEMA_VERSION:
            self._use_write_ahead_log(connection)
            self._migrate(connection)
        self._files.note_companions()

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """Retry: SQLite's busy timeout does not cover a change of the journal mode."""
        deadline = time.monotonic() + self._busy_time_limit_ms / 1000
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_SECONDS)

    def _version(self, connection: sqlite3.Connection) -> int:
        # One snapshot: another process may be creating the store.
        connection.execute("BEGIN")
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        application = int(connection.execute("PRAGMA application_id").fetchone()[0])
        counts = "SELECT count(*), count(*) FILTER (WHERE type = 'trigger') FROM sqlite_master"
        tables, triggers = connection.execute(counts).fetchone()
        connection.execute("COMMIT")
        if application != APPLICATION_ID and (tables or version):
            raise StoreError(
                f"{self.path} is an SQLite file of another program. "
                "Nothing was changed; give another path."
            )
        # They would copy or change later writes, or keep purged text.
        if triggers:
            raise StoreError(
                f"{self.path} holds triggers, which Trivet never creates: somebody changed the "
                "file. Nothing was changed; use a copy that you trust, or remove the triggers: "
                "sqlite3 FILE 'DROP TRIGGER NAME'."
            )
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} was written by a newer Trivet (schema {version}, this one knows "
                f"{SCHEMA_VERSION}). Nothing was changed; upgrade Trivet to open it."
            )
        return version

    def _migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            for step in steps(FOLDER, version, SCHEMA_VERSION):
                for statement in _statements(step.sql):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            _roll_back(connection)
            raise


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:  # on a full disk SQLite has already rolled back
        connection.execute("ROLLBACK")


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
