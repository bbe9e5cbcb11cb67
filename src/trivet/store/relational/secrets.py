"""Sealed secrets, which live and go with their memories."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.store.relational.database import Connection, Database, Row
from trivet.types import Sealed


class RelationalSecrets:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql("secrets")

    def of(self, id: str) -> tuple[Sealed, ...]:
        with self._database.errors():
            rows = (
                self._database.read().execute(self._sql["of"], {"id": id, "viewer": self._database.viewer}).fetchall()
            )
        return tuple(_sealed(row) for row in rows)

    def not_under(self, key: str, limit: int) -> tuple[tuple[str, Sealed], ...]:
        """Some of the secrets that another key sealed, each with its memory's id."""
        with self._database.errors():
            rows = self._database.read().execute(self._sql["not_under"], {"key": key, "limit": limit}).fetchall()
        return tuple((row["id"], _sealed(row)) for row in rows)

    def reseal(self, done: Sequence[tuple[str, Sealed]]) -> None:
        with self._database.write() as connection:
            for id, sealed in done:
                connection.execute(self._sql["reseal"], {"id": id, **msgspec.structs.asdict(sealed)})


def insert_secrets(connection: Connection, memory: int, secrets: Sequence[Sealed]) -> None:
    for sealed in secrets:
        connection.execute(connection.sql("secrets")["insert"], {"memory": memory, **msgspec.structs.asdict(sealed)})


def _sealed(row: Row) -> Sealed:
    return Sealed(
        revision=row["revision"],
        field=row["field"],
        kind=row["kind"],
        number=row["number"],
        key=row["key"],
        nonce=bytes(row["nonce"]),
        sealed=bytes(row["sealed"]),
    )
