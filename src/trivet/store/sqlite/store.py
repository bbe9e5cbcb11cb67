"""Puts the parts of the embedded store together."""

from __future__ import annotations

from pathlib import Path

from trivet.store.sqlite.changes import Changes
from trivet.store.sqlite.concepts import SqliteConcepts
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.graph import SqliteGraph
from trivet.store.sqlite.identity import Identities
from trivet.store.sqlite.jobs import SqliteJobs
from trivet.store.sqlite.lexical import SqliteLexicalIndex
from trivet.store.sqlite.links import SqliteLinks
from trivet.store.sqlite.memories import SqliteMemories
from trivet.store.sqlite.postings import PostingCache
from trivet.store.sqlite.secrets import SqliteSecrets
from trivet.store.sqlite.upkeep import SqliteUpkeep
from trivet.store.sqlite.vectors import SqliteVectorIndex
from trivet.store.sqlite.visible import Visibility


class SqliteStore:
    def __init__(self, path: Path, busy_time_limit_ms: int = 10_000) -> None:
        self._database = Database(path, busy_time_limit_ms)
        changes = Changes(self._database)
        visibility = Visibility(self._database, changes)
        identities = Identities(self._database)
        self.memories = SqliteMemories(self._database, visibility)
        self.links = SqliteLinks(self._database)
        self.lexical = SqliteLexicalIndex(self._database, visibility, PostingCache(self._database, changes), identities)
        self.vectors = SqliteVectorIndex(self._database, visibility, changes, identities)
        self.graph = SqliteGraph(self._database, visibility, changes, identities)
        self.concepts = SqliteConcepts(self._database)
        self.jobs = SqliteJobs(self._database)
        self.secrets = SqliteSecrets(self._database)
        self.upkeep = SqliteUpkeep(self._database)

    def close(self) -> None:
        self._database.close()
