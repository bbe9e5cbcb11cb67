"""What of a tenant moves: the rows of every table that has tenants, found in the database itself, so none is forgotten.

Copied as they are: all that users wrote or that belongs to it (memories, revisions, links, shares, accounts, keys,
secrets as they are sealed, the audit record, proposals, feedback, what laptops need), and what is derived but costs
much to make (vectors, graph, fingerprints) or is queued. Made anew: postings, out of `lexical`, and an index over many
vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trivet.store.postgres.cells.side import SQL
from trivet.store.postgres.connection_pool import Connection
from trivet.store.postgres.index_files import OF_ONE_DATABASE
from trivet.store.relational.database import ERASING

# Where a tenant is, and what is made anew. Models are matched by what they are, since each database numbers its own.
NOT_COPIED = frozenset(("tenant", "directory", "posting", "embedding_model"))
# A database gives these numbers itself, across tenants; what makes the row one of its kind is the rest.
NUMBERED_HERE = {"statement": ("source", "relation", "target", "memory", "valid_from")}
# Rows are counted by so many keys together: where the counts differ, the keys themselves are compared.
KEYS_TOGETHER = 1_024
# What is still to be erased from the files concerns the files of one database, and so do the names of index files.
_WITHIN = {"meta": f"name != '{ERASING}' AND NOT {OF_ONE_DATABASE}"}


class Parent(msgspec.Struct, frozen=True):
    """A table that rows refer to, by which columns of theirs and of its own."""

    table: str
    columns: tuple[str, ...]
    target: tuple[str, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    number: str | None  # a column of the key that counts up
    parents: tuple[Parent, ...] = ()

    @property
    def within(self) -> str:
        return _WITHIN.get(self.name, "true")

    @property
    def bucket(self) -> str:
        return f"{self.number} / {KEYS_TOGETHER}" if self.number else "0::bigint"

    def listed(self, columns: Sequence[str], models: Mapping[int, int] | None = None) -> str:
        """The columns for a query; with `models` the numbers of models as the other database has them."""
        return ", ".join(_translated(models) if one == "model" and models is not None else one for one in columns)


def tables(connection: Connection) -> list[Table]:
    """In the order in which they refer to each other."""
    rows = [dict(zip(row.places, row, strict=True)) for row in connection.execute(SQL["tables"])]
    found = [_table(row) for row in rows if row["name"] not in NOT_COPIED]
    ordered: list[Table] = []
    while found:
        names = {one.name for one in found}
        free = [one for one in found if not {parent.table for parent in one.parents} & (names - {one.name})]
        assert free, "tables do not refer to each other in a circle"
        ordered += free
        found = [one for one in found if one not in free]
    return ordered


def _table(row: Mapping[str, Any]) -> Table:
    name = str(row["name"])
    own = NUMBERED_HERE.get(name)
    key = own or tuple(one for one in row["key"] if one != "tenant")
    left_out = {"tenant", name} if own else {"tenant"}
    return Table(
        name=name,
        columns=tuple(one for one in row["columns"] if one not in left_out),
        key=key,
        number=next((one for one in ("memory", key[0]) if one in key and one in row["numbers"]), None),
        parents=tuple(_parent(one) for one in row["parents"]),
    )


def _parent(told: Mapping[str, str | list[str]]) -> Parent:
    columns = tuple(one for one in told["columns"] if one != "tenant")
    return Parent(str(told["table"]), columns, tuple(one for one in told["target"] if one != "tenant"))


def _translated(models: Mapping[int, int]) -> str:
    """NULL for a model that came after the models were read."""
    cases = " ".join(f"WHEN {old} THEN {new}" for old, new in models.items())
    return f"CASE model {cases} END::bigint AS model" if models else "NULL::bigint AS model"
