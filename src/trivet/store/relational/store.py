"""Assembly of a store's parts over any database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self

from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Database, StoreDatabase, SupportsFollowing
from trivet.store.relational.ids import Ids
from trivet.store.relational.index.concepts import Concepts
from trivet.store.relational.index.embedding_queue import EmbeddingQueue
from trivet.store.relational.index.graph_index import GraphIndex
from trivet.store.relational.index.lexical import LexicalIndex
from trivet.store.relational.index.vector_index import VectorIndex
from trivet.store.relational.index.visibility import Visibility
from trivet.store.relational.maintenance import Maintenance
from trivet.store.relational.tables.access import Accounts, Secrets, Shares
from trivet.store.relational.tables.inbox import Inbox
from trivet.store.relational.tables.ledgers import Audit, Idempotency, UsageCounts, Vaults
from trivet.store.relational.tables.links import LikelyUpdates, Links, LinksExist
from trivet.store.relational.tables.memories import Memories
from trivet.store.relational.tables.sync_bundles import Branches, BranchesExist
from trivet.store.relational.tables.sync_feed import SyncFeed


class RelationalStore(ABC):
    """A store of memories; each write method of a part is one transaction."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        changes, ids = Changes(database), Ids(database)
        self._visibility, self._ids = Visibility(database, changes), ids
        self._links_exist = LinksExist(database, changes)
        self._branches_exist = BranchesExist(database, changes)
        self.lexical = LexicalIndex(database, self._visibility, changes, ids)
        self.vectors = self._make_vector_index(changes)
        self.graph = GraphIndex(database, self._visibility, changes, ids)
        self.jobs = EmbeddingQueue(database, changes)
        self.vaults = Vaults(database)
        self.idempotency = Idempotency(database)
        self.feed = SyncFeed(database)
        # Without a viewer, for the store's own upkeep.
        self.all_memories = Memories(database, self._visibility, ids)
        self.upkeep = self._make_maintenance()
        # Reads within it see all earlier writes and may miss later ones.
        self.moment = changes.moment
        self._read_for_viewer(database)

    @abstractmethod
    def _make_vector_index(self, changes: Changes) -> VectorIndex: ...

    @abstractmethod
    def _make_maintenance(self) -> Maintenance: ...

    def seen_by(self, user: str) -> Self:
        """Return this store limited to one user of a server.

        Filters must name the same user. The indexes are shared; do not close it.
        """
        seen = copy(self)
        seen._read_for_viewer(self._database.seen_by(user))
        return seen

    def as_follower(self) -> Self:
        """Return a laptop's store limited to what the server grants its owner."""
        seen = copy(self)
        database = self._database
        assert isinstance(database, SupportsFollowing), "only a file follows a server"
        seen._read_for_viewer(database.as_follower())
        return seen

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one transaction of writes to any parts."""
        with self._database.write():
            yield

    def close(self) -> None:
        self.vectors.close()
        self._database.close()

    def _read_for_viewer(self, database: Database) -> None:
        # Users may not read these; the server bases its decisions on them.
        self.accounts = Accounts(self._database, database.viewer)
        self.memories = Memories(database, self._visibility, self._ids)
        self.links = Links(database, self._links_exist)
        self.branches = Branches(database, self._branches_exist)
        self.likely_updates = LikelyUpdates(database)
        self.concepts = Concepts(database)
        self.secrets = Secrets(database)
        self.shares = Shares(database)
        self.audit = Audit(database)
        self.inbox = Inbox(database)
        self.usage = UsageCounts(database)
