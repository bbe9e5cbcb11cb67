"""A file of the embedded store into an empty tenant: how a laptop's memory moves to a server, vectors and all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from trivet.errors import Conflict
from trivet.store.postgres.backup import TABLES
from trivet.store.postgres.connection import Transaction
from trivet.store.postgres.database import Database

_BOOLEANS = {"sensitive", "single", "serving"}
_POSTINGS = """
INSERT INTO posting (term, memory, content, title, keywords, tags, category)
SELECT term, memory, count(*) FILTER (WHERE field = 1), count(*) FILTER (WHERE field = 2),
       count(*) FILTER (WHERE field = 3), count(*) FILTER (WHERE field = 4), count(*) FILTER (WHERE field = 5)
FROM (SELECT l.memory, unnest(string_to_array(text, ' ')) AS term, field
      FROM lexical AS l, unnest(ARRAY[l.content, l.title, l.keywords, l.tags, l.category])
                         WITH ORDINALITY AS one (text, field)) AS word
GROUP BY term, memory
"""
# That a file followed a server is no matter of the tenant that its memories move to.
_NOT_A_LAPTOP = "DELETE FROM meta WHERE name = 'sync' AND value::jsonb ->> 'role' = 'laptop'"
# A statement of many rows is planned once; more of them would only take memory.
ROWS_AT_ONCE = 2_000

_LAST = "SELECT (SELECT coalesce(max(key), 0) FROM memory), (SELECT coalesce(max(concept), 0) FROM concept)"


def import_sqlite(file: Path, database: Database) -> None:
    """In one transaction. The file must be of the present schema: open it once with this Trivet."""
    source = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        with database.write() as transaction:
            if transaction.execute("SELECT 1 FROM memory LIMIT 1").fetchone():
                raise Conflict(
                    f"{database.name} has memories already. Nothing was written; take a file into a new tenant."
                )
            models = _models(source, transaction)
            for table, columns in TABLES.items():
                if table != "embedding_model":
                    _insert(transaction, table, _rows(source, table, columns.split(", "), models))
                    # The rows that refer to these are checked by a plan for as many as are known: made for a few, it
                    # reads all rows of the tenant for each. By a role that does not own the tables nothing happens.
                    transaction.execute(f"ANALYZE {table}")
            lexical = ["memory", "content", "title", "keywords", "tags", "category"]
            _insert(transaction, "lexical", _rows(source, "lexical", ["rowid AS memory", *lexical[1:]], models))
            transaction.execute(_NOT_A_LAPTOP)
            transaction.execute(_POSTINGS)
            _insert(transaction, "passage", _passages(source, models))
            for (key,) in source.execute("SELECT key FROM memory"):
                transaction.note_change(key)
            transaction.number_from(*source.execute(_LAST).fetchone())
    finally:
        source.close()


def _models(source: sqlite3.Connection, transaction: Transaction) -> dict[int, int]:
    """Numbers of models are given by the server, where indexes go by them."""
    numbers = {}
    for model, *values in source.execute("SELECT model, identity, spec, dimension, serving FROM embedding_model"):
        row = dict(zip(("identity", "spec", "dimension", "serving"), (*values[:3], bool(values[3])), strict=True))
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
    for row in _rows(source, "passage", ["memory", "model", "ordinal", "start", "stop", "vector", "terms"], models):
        yield {**row, "vector": np.frombuffer(row["vector"], np.float16).tolist()}


def _insert(transaction: Transaction, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    for some in batched(rows, ROWS_AT_ONCE):
        names = ", ".join(some[0])
        sql = f"INSERT INTO {table} ({names}) SELECT {names} FROM json_populate_recordset(NULL::{table}, %(rows)s)"
        transaction.execute(sql, {"rows": json.dumps(some, ensure_ascii=False)})


def batched(rows: Iterable[Mapping[str, Any]], size: int) -> Iterator[list[Mapping[str, Any]]]:
    remaining = iter(rows)
    while some := list(islice(remaining, size)):
        yield some
