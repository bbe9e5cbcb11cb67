"""Sealed secrets, stored and deleted with their memories."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from trivet.errors import RetiredKey
from trivet.store.relational.database import Row, StorePart, WriteTransaction
from trivet.types import Sealed


class Secrets(StorePart):
    file = "secrets"

    def of(self, id: str) -> tuple[Sealed, ...]:
        return tuple(_sealed(row) for row in self._rows("of", id=id, viewer=self._database.viewer))

    def keys_in_use(self) -> tuple[str, ...]:
        return tuple(row[0] for row in self._rows("keys"))

    def not_under(self, key: str, limit: int) -> tuple[tuple[str, Sealed], ...]:
        """Return some secrets sealed by another key, each with its memory's id."""
        return tuple(
            (row["id"], _sealed(row)) for row in self._rows("not_under", key=key, limit=limit)
        )

    def is_retired(self, key: str) -> bool:
        return self._row("retired_by", name=_retired(key)) is not None

    def retire(self, keys: Collection[str], by: str) -> None:
        """Reject further writes sealed with these keys, so that they can be dropped safely.

        A writer may have sealed with one and not have committed yet; it must seal again.
        """
        with self._database.write() as connection:
            _check_not_retired(connection, {by})
            for key in keys:
                connection.execute(self._sql["retire"], {"name": _retired(key), "by": by})

    def reseal(self, done: Sequence[tuple[str, Sealed]]) -> None:
        with self._database.write() as connection:
            _check_not_retired(connection, {sealed.key for _, sealed in done})
            for id, sealed in done:
                connection.execute(
                    self._sql["reseal"], {"id": id, **msgspec.structs.asdict(sealed)}
                )


def check_keys(connection: WriteTransaction, secrets: Iterable[Sealed]) -> None:
    """Raise RetiredKey before anything is written, so that the caller can seal again."""
    _check_not_retired(connection, {sealed.key for sealed in secrets})


def insert_secrets(connection: WriteTransaction, memory: int, secrets: Sequence[Sealed]) -> None:
    for sealed in secrets:
        connection.execute(
            connection.sql("secrets")["insert"],
            {"memory": memory, **msgspec.structs.asdict(sealed)},
        )


def _check_not_retired(connection: WriteTransaction, keys: Collection[str]) -> None:
    for key in sorted(keys):
        row = connection.execute(
            connection.sql("secrets")["retired_by"], {"name": _retired(key)}
        ).fetchone()
        if row is not None:
            raise RetiredKey(
                f"The key {key} was replaced here by {row[0]}. Nothing was written; try again. "
                "If the error persists, an old copy of the keys was restored: "
                "`trivet rotate-keys` makes a new one."
            )


def _retired(key: str) -> str:
    return f"retired key {key}"


def _sealed(row: Row) -> Sealed:
    fields = {name: row[name] for name in Sealed.__struct_fields__}
    return Sealed(**{**fields, "nonce": bytes(row["nonce"]), "sealed": bytes(row["sealed"])})
