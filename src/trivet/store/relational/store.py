"""Puts the parts of a store together over any database that fills the seam in database.py."""

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
from trivet.store.relational.tables.access import Accounts, Audit, Shares
from trivet.store.relational.tables.inbox import Inbox
from trivet.store.relational.tables.ledgers import Idempotency, UsageCounts, Vaults
from trivet.store.relational.tables.links import LikelyUpdates, Links, LinksExist
from trivet.store.relational.tables.memories import Memories
from trivet.store.relational.tables.secrets import Secrets
from trivet.store.relational.tables.sync_bundles import Branches, BranchesExist
from trivet.store.relational.tables.sync_feed import SyncFeed


class RelationalStore(ABC):
    """A place where memories live. Every write method of every part is one transaction."""

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
        # Whoever looks, for what the store does by itself.
        self.all_memories = Memories(database, self._visibility, ids)
        self.upkeep = self._make_maintenance()
        # Reads within it know every write that was acknowledged before it began, and need not look for later ones.
        self.moment = changes.moment
        self._read_for_viewer(database)

    @abstractmethod
    def _make_vector_index(self, changes: Changes) -> VectorIndex:
        """Make the vector index of this kind of database."""

    @abstractmethod
    def _make_maintenance(self) -> Maintenance:
        """Make the maintenance of this kind of database."""

    def seen_by(self, user: str) -> Self:
        """The same store as a user of a server sees it: reads are limited in SQL, writes checked and on the record.

        Filters must name the same user; the indexes are shared. It is not to be closed.
        """
        seen = copy(self)
        seen._read_for_viewer(self._database.seen_by(user))
        return seen

    def as_follower(self) -> Self:
        """The same store of a laptop that follows a server: its owner reads and writes what they may."""
        seen = copy(self)
        database = self._database
        assert isinstance(database, SupportsFollowing), "only a file follows a server"
        seen._read_for_viewer(database.as_follower())
        return seen

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written within it, by any part of the store, is one transaction."""
        with self._database.write():
            yield

    def close(self) -> None:
        self.vectors.close()
        self._database.close()

    def _read_for_viewer(self, database: Database) -> None:
        """Makes the parts that hold words, for the owner of the store or for one user of a server."""
        # Who is a user, and what their keys are, is not for users to read: it is read for the server, which decides.
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
