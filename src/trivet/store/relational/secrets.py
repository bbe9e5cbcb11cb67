"""Sealed secrets, which live and go with their memories."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.store.relational.database import Part, Row, WriteTransaction
from trivet.types import Sealed


class Secrets(Part):
    file = "secrets"

    def of(self, id: str) -> tuple[Sealed, ...]:
        return tuple(_sealed(row) for row in self._rows("of", id=id, viewer=self._database.viewer))

    def not_under(self, key: str, limit: int) -> tuple[tuple[str, Sealed], ...]:
        """Some of the secrets that another key sealed, each with its memory's id."""
        return tuple((row["id"], _sealed(row)) for row in self._rows("not_under", key=key, limit=limit))

    def reseal(self, done: Sequence[tuple[str, Sealed]]) -> None:
        with self._database.write() as connection:
            for id, sealed in done:
                connection.execute(self._sql["reseal"], {"id": id, **msgspec.structs.asdict(sealed)})


def insert_secrets(connection: WriteTransaction, memory: int, secrets: Sequence[Sealed]) -> None:
    for sealed in secrets:
        connection.execute(connection.sql("secrets")["insert"], {"memory": memory, **msgspec.structs.asdict(sealed)})


def _sealed(row: Row) -> Sealed:
    fields = {name: row[name] for name in Sealed.__struct_fields__}
    return Sealed(**{**fields, "nonce": bytes(row["nonce"]), "sealed": bytes(row["sealed"])})
