"""Backup and import between a tenant and an embedded store's file, and server-only checks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from trivet import memory_fields
from trivet.errors import Conflict, StoreError
from trivet.store.postgres.database import Database
from trivet.store.postgres.index_files import OF_ONE_DATABASE
from trivet.store.postgres.transactions import Transaction
from trivet.store.relational.index.vector_index import VectorIndex
from trivet.store.relational.maintenance import COLUMNS, Maintenance, RowCheck, rows_finding
from trivet.store.sqlite.store import SqliteStore, remove_partial
from trivet.types import Finding

# Each table comes after those it refers to.
TABLES = {
    "memory": ", ".join(memory_fields.columns()),
    "memory_tag": "memory, tag",
    "revision": "memory, revision, changed_at, action, snapshot, rev, base, author",
    "branch": "memory, rev, base, author, changed_at, action, snapshot, waiting, terms",
    "link": "source, kind, target, created_at",
    "fingerprint": "hash, memory",
    "embedding_model": "model, identity, spec, dimension, serving",
    "job": "memory, model, revision, attempts, not_before, last_error",
    "meta": "name, value",
    "concept": "concept, name",
    "mention": "memory, concept, reader, role, kind, label, form",
    "statement": "statement, source, relation, target, memory, weight, single, valid_from, "
    "valid_to, recorded_at",
    "reading": "memory, reader, revision, attempts, not_before, last_error",
    "was_read": "memory, reader, revision",
    "likely_update": "newer, older, probability",
    "comparison": "memory, revision",
    "secret": "memory, kind, number, revision, field, key, nonce, sealed",
    "account": "name, role, created_at",
    "api_key": "id, account, hash, rights, label, created_at, expires_at, revoked_at",
    "share": "memory, grantee, permission, created_at",
    "tag_share": "owner, tag, grantee, permission, created_at",
    "proposal": "id, owner, content, kind, reason, action, memory, category, tags, scope, source, "
    "state, created_at, decided_at, stored, curated_at, said",
    "usage": "memory, shown, last_shown",
    "feedback": "memory, actor, query, verdict, at",
    "vault": "name, root, options",
    "vault_file": "vault, path, size, modified, reader",
    "vault_part": "vault, id, path, place, content, said, about",
    "vault_link": "vault, source, kind, target",
    "tombstone": "id, memory, owner, seq, first_rev",
    "feed": "memory, id, seq, digest, readers, healed",
    "numbering": "seq, mark, at",
    "revoked": "grantee, seq, id, purged, at",
    "applied": "op, result, id, reason, at",
    "audit": "sequence, at, actor, act, memory, detail, hash",
}


def copy_into(target: Path, snapshot: Transaction) -> None:
    SqliteStore(target).close()  # creates the private file with its schema
    copy = sqlite3.connect(target)
    try:
        with copy:
            for table, columns in TABLES.items():
                within = f"NOT {OF_ONE_DATABASE}" if table == "meta" else "true"
                _insert_into_file(
                    copy,
                    table,
                    columns,
                    snapshot.execute(f"SELECT {columns} FROM {table} WHERE {within}"),
                )
            lexical = "memory, content, title, keywords, tags, category"
            rows = snapshot.execute(f"SELECT {lexical} FROM lexical")
            _insert_into_file(copy, "lexical", lexical.replace("memory", "rowid"), rows)
            passage = "memory, model, ordinal, start, stop, vector, terms"
            vectors = snapshot.execute(
                "SELECT memory, model, ordinal, start, stop, vector::text, terms FROM passage"
            )
            _insert_into_file(
                copy, "passage", passage, ((*row[:5], _as_bytes(row[5]), row[6]) for row in vectors)
            )
            copy.execute("INSERT INTO change (memory) SELECT key FROM memory")
    finally:
        copy.close()


def _insert_into_file(
    copy: sqlite3.Connection, table: str, columns: str, rows: Iterable[Iterable[object]]
) -> None:
    places = ", ".join("?" for _ in columns.split(","))
    copy.executemany(
        f"INSERT INTO {table} ({columns}) VALUES ({places})", (tuple(row) for row in rows)
    )


def _as_bytes(vector: str) -> bytes:
    return np.array(vector.strip("[]").split(","), np.float16).tobytes()


_BOOLEANS = {"sensitive", "single", "serving"}
_POSTINGS = """
INSERT INTO posting (term, memory, content, title, keywords, tags, category)
SELECT term, memory, count(*) FILTER (WHERE field = 1), count(*) FILTER (WHERE field = 2),
       count(*) FILTER (WHERE field = 3), count(*) FILTER (WHERE field = 4),
       count(*) FILTER (WHERE field = 5)
FROM (SELECT l.memory, unnest(string_to_array(text, ' ')) AS term, field
      FROM lexical AS l, unnest(ARRAY[l.content, l.title, l.keywords, l.tags, l.category])
                         WITH ORDINALITY AS one (text, field)) AS word
GROUP BY term, memory
"""
_FORGET_FOLLOWED_SERVER = (
    "DELETE FROM meta WHERE name = 'sync' AND value::jsonb ->> 'role' = 'laptop'"
)
# Larger batches take more memory and save no time.
ROWS_AT_ONCE = 2_000

_LAST = (
    "SELECT (SELECT coalesce(max(key), 0) FROM memory), "
    "(SELECT coalesce(max(concept), 0) FROM concept)"
)


def import_sqlite(file: Path, database: Database) -> None:
    source = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        with database.write() as transaction:
            if transaction.execute("SELECT 1 FROM memory LIMIT 1").fetchone():
                raise Conflict(
                    f"{database.name} has memories already. "
                    "Nothing was written; import the file into a new tenant."
                )
            models = _models(source, transaction)
            for table, columns in TABLES.items():
                if table != "embedding_model":
                    _insert(transaction, table, _rows(source, table, columns.split(", "), models))
                    # A foreign key check planned for few rows would read the whole table for each
                    # row.
                    transaction.execute(f"ANALYZE {table}")
            lexical = ["memory", "content", "title", "keywords", "tags", "category"]
            _insert(
                transaction,
                "lexical",
                _rows(source, "lexical", ["rowid AS memory", *lexical[1:]], models),
            )
            transaction.execute(_FORGET_FOLLOWED_SERVER)
            transaction.execute(_POSTINGS)
            _insert(transaction, "passage", _passages(source, models))
            for (key,) in source.execute("SELECT key FROM memory"):
                transaction.note_change(key)
            transaction.number_from(*source.execute(_LAST).fetchone())
    finally:
        source.close()


def _models(source: sqlite3.Connection, transaction: Transaction) -> dict[int, int]:
    numbers = {}
    for model, *values in source.execute(
        "SELECT model, identity, spec, dimension, serving FROM embedding_model"
    ):
        row = dict(
            zip(
                ("identity", "spec", "dimension", "serving"),
                (*values[:3], bool(values[3])),
                strict=True,
            )
        )
        made = transaction.execute(transaction.sql("vectors")["insert_model"], row).fetchone()
        assert made is not None
        numbers[model] = made[0]
    return numbers


def _rows(
    source: sqlite3.Connection, table: str, columns: Sequence[str], models: Mapping[int, int]
) -> Iterable[dict[str, Any]]:
    names = [column.rpartition(" ")[2] for column in columns]
    for values in source.execute(f"SELECT {', '.join(columns)} FROM {table}"):
        row = dict(zip(names, values, strict=True))
        row.pop("statement", None)  # numbered by the server, like models
        row.update({name: bool(row[name]) for name in _BOOLEANS & row.keys()})
        if "model" in row:
            row["model"] = models[row["model"]]
        yield row


def _passages(source: sqlite3.Connection, models: Mapping[int, int]) -> Iterable[dict[str, Any]]:
    for row in _rows(
        source,
        "passage",
        ["memory", "model", "ordinal", "start", "stop", "vector", "terms"],
        models,
    ):
        yield {**row, "vector": np.frombuffer(row["vector"], np.float16).tolist()}


def _insert(transaction: Transaction, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    for some in batched(rows, ROWS_AT_ONCE):
        names = ", ".join(some[0])
        sql = (
            f"INSERT INTO {table} ({names}) SELECT {names} "
            f"FROM json_populate_recordset(NULL::{table}, %(rows)s)"
        )
        transaction.execute(sql, {"rows": json.dumps(some, ensure_ascii=False)})


def batched(rows: Iterable[Mapping[str, Any]], size: int) -> Iterator[list[Mapping[str, Any]]]:
    remaining = iter(rows)
    while some := list(islice(remaining, size)):
        yield some


READ_AT_ONCE = 1_000
# A backup rebuilds these.
INDEXES = ("lexical", "posting", "passage")


class PostgresMaintenance(Maintenance):
    def __init__(self, database: Database, vectors: VectorIndex) -> None:
        super().__init__(database, vectors)
        self._postgres = database

    def backup(self, target: Path) -> None:
        if target.exists():
            raise StoreError(f"{target} already exists. Nothing was written; name another file.")
        if not target.parent.is_dir():
            raise StoreError(
                f"The backup {target} cannot be written: there is no such folder. "
                "Nothing was written."
            )
        partial = target.with_name(target.name + ".partial")
        try:
            remove_partial(partial)
            with self._postgres.snapshot() as snapshot:
                copy_into(partial, snapshot)
            partial.rename(target)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"The backup {target} cannot be written: {error}. No partial file is left."
            ) from None
        finally:
            remove_partial(partial)

    def findings(self, whole: bool = True) -> tuple[Finding, ...]:
        read = [self._rows_read()] if whole else []
        if not all(finding.ok for finding in read):
            return tuple(read)
        return (
            *read,
            *super().findings(whole),
            self._vector_index(),
            self._standbys(),
            self._roles(),
        )

    def _rows_read(self) -> Finding:
        check = RowCheck()
        try:
            with self._postgres.snapshot() as snapshot:
                for table, columns in COLUMNS.items():
                    check.check_rows(table, _paged(snapshot, table, columns))
                for table in (*(one for one in TABLES if one not in COLUMNS), *INDEXES):
                    [row] = snapshot.execute(f"SELECT count(t::text) FROM {table} AS t").fetchall()
                    check.rows += int(row[0])
        except StoreError as error:
            check.problems.append(str(error))
        return rows_finding(check)

    def _vector_index(self) -> Finding:
        trouble = self._vectors.trouble
        remedy = (
            "Run `trivet migrate postgresql://OWNER@HOST/DATABASE` to build it."
            if trouble
            else None
        )
        return Finding(
            check="index of many vectors",
            ok=not trouble,
            detail=trouble or "none missing",
            remedy=remedy,
        )

    def _roles(self) -> Finding:
        server = self._postgres.server
        if server.acts_as_owner:
            detail = (
                f"weaker than two: this one can act as {server.owner}, "
                "who owns the tables and could turn off row-level security"
            )
        else:
            detail = f"two: the tables belong to {server.owner}, and this one cannot change them"
        return Finding(check="roles of the database", ok=True, detail=detail)

    def _standbys(self) -> Finding:
        states = self._postgres.server.replicas.states()
        described = [
            f"{state.name}: {state.trouble or 'up'}, chosen {state.chosen} times, "
            f"{state.behind} behind, {state.failed} failed"
            for state in states
        ]
        ok = all(one.up for one in states)
        remedy = (
            None
            if ok
            else "Check that it runs and follows the primary; until then the primary answers."
        )
        return Finding(
            check="standbys", ok=ok, detail="; ".join(described) or "none configured", remedy=remedy
        )


def _paged(snapshot: Transaction, table: str, columns: Sequence[str]) -> Iterator[Sequence[object]]:
    """Page by ctid, which is stable within a snapshot."""
    sql = (
        f"SELECT ctid::text, {', '.join(columns)} FROM {table} "
        "WHERE ctid > %(after)s::tid ORDER BY ctid LIMIT %(most)s"
    )
    after = "(0,0)"
    while rows := snapshot.execute(sql, {"after": after, "most": READ_AT_ONCE}).fetchall():
        yield from (row[1:] for row in rows)
        after = rows[-1][0]
