"""Puts the parts of the PostgreSQL store together."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from numpy import float16
from numpy.typing import NDArray

from trivet.store.postgres.database import Database
from trivet.store.postgres.identity import every_id
from trivet.store.postgres.postings import StoredPostings
from trivet.store.postgres.seen import SeenTenant
from trivet.store.postgres.server import Server
from trivet.store.postgres.taking_in import take_in
from trivet.store.postgres.upkeep import PostgresUpkeep
from trivet.store.postgres.vectors import PostgresVectorIndex
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
from trivet.store.relational.vaults import RelationalVaults
from trivet.store.relational.visible import Visibility


class PostgresStore(Bound):
    """The memories of one tenant. A process opens the server once and a store for each tenant on it."""

    _database: Database

    def __init__(self, server: Server | str, tenant: str = "default", closes_server: bool = False) -> None:
        opened = Server(server) if isinstance(server, str) else server
        self._own_server = opened if closes_server or isinstance(server, str) else None
        self._database = Database(opened, tenant)
        changes = Changes(self._database)
        visibility = Visibility(self._database, changes)
        identities = Identities(self._database, partial(every_id, self._database))
        self._visibility = visibility
        self._any_links = AnyLinks(self._database, changes)
        postings = PostingCache(self._database, changes, StoredPostings(self._database).read)
        self.lexical = RelationalLexicalIndex(self._database, visibility, postings, identities)
        self.vectors = PostgresVectorIndex(self._database, visibility, changes, identities)
        self.graph = RelationalGraph(self._database, visibility, changes, identities)
        self.jobs = RelationalJobs(self._database, as_text)
        self.accounts = RelationalAccounts(self._database)
        self.vaults = RelationalVaults(self._database)
        self.once = RelationalOnce(self._database)
        self._bind(self._database)
        self.upkeep = PostgresUpkeep(self._database, self.vectors)
        self.moment = changes.moment

    def take_in(self, file: Path) -> None:
        """A file of the embedded store, of the present schema, into this tenant, which must be empty."""
        take_in(file, self._database)

    def _seen_database(self, user: str) -> SeenTenant:
        return SeenTenant(self._database, user)

    def close(self) -> None:
        self.vectors.close()
        self._database.close()
        if self._own_server:
            self._own_server.close()


def as_text(vector: NDArray[float16]) -> str:
    return str(vector.tolist())
