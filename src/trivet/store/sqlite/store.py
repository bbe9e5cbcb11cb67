"""Puts the parts of the embedded store together."""

from __future__ import annotations

from pathlib import Path

from trivet.store.relational.accounts import RelationalAccounts
from trivet.store.relational.any_links import AnyLinks
from trivet.store.relational.bound import Bound
from trivet.store.relational.changes import Changes
from trivet.store.relational.graph import RelationalGraph
from trivet.store.relational.identity import Identities
from trivet.store.relational.jobs import RelationalJobs
from trivet.store.relational.lexical import RelationalLexicalIndex
from trivet.store.relational.once import RelationalOnce
from trivet.store.relational.postings import PostingCache
from trivet.store.relational.seen import SeenDatabase
from trivet.store.relational.vaults import RelationalVaults
from trivet.store.relational.visible import Visibility
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.memories import SqliteMemories
from trivet.store.sqlite.postings import FtsPostings
from trivet.store.sqlite.upkeep import SqliteUpkeep
from trivet.store.sqlite.vectors import SqliteVectorIndex


class SqliteStore(Bound):
    _database: Database
    _memories = SqliteMemories

    def __init__(self, path: Path, busy_time_limit_ms: int = 10_000) -> None:
        self._database = Database(path, busy_time_limit_ms)
        changes = Changes(self._database)
        visibility = Visibility(self._database, changes)
        identities = Identities(self._database)
        self._visibility = visibility
        self._any_links = AnyLinks(self._database, changes)
        postings = PostingCache(self._database, changes, FtsPostings(self._database).read)
        self.lexical = RelationalLexicalIndex(self._database, visibility, postings, identities)
        self.vectors = SqliteVectorIndex(self._database, visibility, changes, identities)
        self.graph = RelationalGraph(self._database, visibility, changes, identities)
        self.jobs = RelationalJobs(self._database, lambda vector: vector.tobytes())
        self.accounts = RelationalAccounts(self._database)
        self.vaults = RelationalVaults(self._database)
        self.once = RelationalOnce(self._database)
        self._bind(self._database)
        self.upkeep = SqliteUpkeep(self._database)
        self.moment = changes.moment

    def _seen_database(self, user: str) -> SeenDatabase:
        return SeenDatabase(self._database, user)

    def close(self) -> None:
        self._database.close()
