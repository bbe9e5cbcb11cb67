"""Puts the parts of the embedded store together."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Self

from trivet.store.relational import database as relational
from trivet.store.relational.accounts import RelationalAccounts
from trivet.store.relational.any_links import AnyLinks
from trivet.store.relational.audit import RelationalAudit
from trivet.store.relational.changes import Changes
from trivet.store.relational.concepts import RelationalConcepts
from trivet.store.relational.graph import RelationalGraph
from trivet.store.relational.identity import Identities
from trivet.store.relational.jobs import RelationalJobs
from trivet.store.relational.lexical import RelationalLexicalIndex
from trivet.store.relational.links import RelationalLinks
from trivet.store.relational.once import RelationalOnce
from trivet.store.relational.postings import PostingCache
from trivet.store.relational.secrets import RelationalSecrets
from trivet.store.relational.seen import SeenDatabase
from trivet.store.relational.shares import RelationalShares
from trivet.store.relational.vaults import RelationalVaults
from trivet.store.relational.visible import Visibility
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.memories import SqliteMemories
from trivet.store.sqlite.postings import FtsPostings
from trivet.store.sqlite.upkeep import SqliteUpkeep
from trivet.store.sqlite.vectors import SqliteVectorIndex


class SqliteStore:
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

    def seen_by(self, user: str) -> Self:
        seen = copy(self)
        seen._bind(SeenDatabase(self._database, user))
        return seen

    def _bind(self, database: relational.Database) -> None:
        """What holds words, for whom it is; the indexes are the same for all."""
        self.memories = SqliteMemories(database, self._visibility)
        self.links = RelationalLinks(database, self._any_links)
        self.concepts = RelationalConcepts(database)
        self.secrets = RelationalSecrets(database)
        self.shares = RelationalShares(database)
        self.audit = RelationalAudit(database)

    def close(self) -> None:
        self._database.close()
