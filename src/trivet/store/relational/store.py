"""Puts the parts of a store together over any database that fills the seam in database.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self

from trivet.store.relational.accounts import Accounts
from trivet.store.relational.audit import Audit
from trivet.store.relational.branches import AnyBranches, Branches
from trivet.store.relational.changes import Changes
from trivet.store.relational.concepts import Concepts
from trivet.store.relational.database import Database, FollowedStore, StoreDatabase
from trivet.store.relational.feed import Feed
from trivet.store.relational.graph import GraphIndex
from trivet.store.relational.idempotency import Idempotency
from trivet.store.relational.ids import Ids
from trivet.store.relational.inbox import Inbox
from trivet.store.relational.jobs import Jobs
from trivet.store.relational.lexical import LexicalIndex
from trivet.store.relational.likely_updates import LikelyUpdates
from trivet.store.relational.links import AnyLinks, Links
from trivet.store.relational.memories import Memories
from trivet.store.relational.secrets import Secrets
from trivet.store.relational.shares import Shares
from trivet.store.relational.usage import UsageCounts
from trivet.store.relational.vaults import Vaults
from trivet.store.relational.visibility import Visibility


class RelationalStore:
    """A place where memories live. Every write method of every part is one transaction."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        changes, ids = Changes(database), Ids(database)
        self._visibility, self._ids = Visibility(database, changes), ids
        self._any_links = AnyLinks(database, changes)
        self._any_branches = AnyBranches(database, changes)
        self.lexical = LexicalIndex(database, self._visibility, changes, ids)
        self.vectors = database.vector_index(self._visibility, changes, ids)
        self.graph = GraphIndex(database, self._visibility, changes, ids)
        self.jobs = Jobs(database, changes)
        self.vaults = Vaults(database)
        self.idempotency = Idempotency(database)
        self.feed = Feed(database)
        # Whoever looks, for what the store does by itself.
        self.all_memories = Memories(database, self._visibility, ids)
        self.upkeep = database.maintenance(self.vectors)
        # Reads within it know every write that was acknowledged before it began, and need not look for later ones.
        self.moment = changes.moment
        self._read_for_viewer(database)

    def seen_by(self, user: str) -> Self:
        """The same store as a user of a server sees it: reads are limited in SQL, writes checked and on the record.

        Filters must name the same user; the indexes are shared. It is not to be closed.
        """
        seen = copy(self)
        seen._read_for_viewer(self._database.seen_by(user))
        return seen

    def followed_by_owner(self) -> Self:
        """The same store of a laptop that follows a server: its owner reads and writes what they may."""
        seen = copy(self)
        database = self._database
        assert isinstance(database, FollowedStore), "only a file follows a server"
        seen._read_for_viewer(database.followed_by_owner())
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
        self.links = Links(database, self._any_links)
        self.branches = Branches(database, self._any_branches)
        self.likely_updates = LikelyUpdates(database)
        self.concepts = Concepts(database)
        self.secrets = Secrets(database)
        self.shares = Shares(database)
        self.audit = Audit(database)
        self.inbox = Inbox(database)
        self.usage = UsageCounts(database)
