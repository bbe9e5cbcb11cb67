"""A tenant as one of its users sees it: the server itself hides the words of memories that are not for them."""

from __future__ import annotations

from trivet.store.postgres.connection import Reader, Transaction
from trivet.store.postgres.database import Database
from trivet.store.relational.seen import SeenDatabase


class SeenTenant(SeenDatabase):
    """Writes are checked by the store in their transaction, which must also see what it never tells."""

    def __init__(self, whole: Database, viewer: str) -> None:
        super().__init__(whole, viewer)
        self._tenant = whole
        self._reader = whole.reader(viewer)

    def read(self) -> Reader | Transaction:
        return self._tenant.current() or self._reader
