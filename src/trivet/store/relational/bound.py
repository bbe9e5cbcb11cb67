"""The parts of a store that hold words, each made for whoever reads: the owner of the store, or a user of a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self

from trivet.store.relational.any_links import AnyLinks
from trivet.store.relational.audit import RelationalAudit
from trivet.store.relational.concepts import RelationalConcepts
from trivet.store.relational.database import Database
from trivet.store.relational.inbox import RelationalInbox
from trivet.store.relational.links import RelationalLinks
from trivet.store.relational.memories import RelationalMemories
from trivet.store.relational.secrets import RelationalSecrets
from trivet.store.relational.seen import SeenDatabase
from trivet.store.relational.shares import RelationalShares
from trivet.store.relational.usage import RelationalUsage
from trivet.store.relational.visible import Visibility


class Bound:
    """What a store inherits. The indexes are the same for all and ask for the same user by the filter."""

    _database: Database
    _visibility: Visibility
    _any_links: AnyLinks
    _memories: type[RelationalMemories] = RelationalMemories

    def seen_by(self, user: str) -> Self:
        seen = copy(self)
        seen._bind(self._seen_database(user))
        return seen

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written within, by any part of the store, is one transaction."""
        with self._database.write():
            yield

    def _seen_database(self, user: str) -> SeenDatabase:
        raise NotImplementedError

    def _bind(self, database: Database) -> None:
        self.memories = self._memories(database, self._visibility)
        self.links = RelationalLinks(database, self._any_links)
        self.concepts = RelationalConcepts(database)
        self.secrets = RelationalSecrets(database)
        self.shares = RelationalShares(database)
        self.audit = RelationalAudit(database)
        self.inbox = RelationalInbox(database)
        self.usage = RelationalUsage(database)
