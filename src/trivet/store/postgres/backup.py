"""A tenant's rows, table by table, into a file of the embedded store: the tables are alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from trivet import memory_fields
from trivet.store.postgres.connection import Transaction
from trivet.store.postgres.index_files import OF_ONE_DATABASE
from trivet.store.sqlite import SqliteStore

# In the order in which they refer to each other.
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
    "statement": "statement, source, relation, target, memory, weight, single, valid_from, valid_to, recorded_at",
    "reading": "memory, reader, revision, attempts, not_before, last_error",
    "was_read": "memory, reader, revision",
    "likely_update": "newer, older, probability",
    "comparison": "memory, revision",
    "secret": "memory, kind, number, revision, field, key, nonce, sealed",
    "account": "name, role, created_at",
    "api_key": "id, account, hash, rights, label, created_at, expires_at, revoked_at",
    "share": "memory, grantee, permission, created_at",
    "tag_share": "owner, tag, grantee, permission, created_at",
    "proposal": "id, owner, content, kind, reason, action, memory, category, tags, scope, source, state, created_at, "
    "decided_at, stored, curated_at, said",
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
    SqliteStore(target).close()  # makes the file, private, with its schema
    copy = sqlite3.connect(target)
    try:
        with copy:
            for table, columns in TABLES.items():
                within = f"NOT {OF_ONE_DATABASE}" if table == "meta" else "true"
                _insert(copy, table, columns, snapshot.execute(f"SELECT {columns} FROM {table} WHERE {within}"))
            lexical = "memory, content, title, keywords, tags, category"
            rows = snapshot.execute(f"SELECT {lexical} FROM lexical")
            _insert(copy, "lexical", lexical.replace("memory", "rowid"), rows)
            passage = "memory, model, ordinal, start, stop, vector, terms"
            vectors = snapshot.execute("SELECT memory, model, ordinal, start, stop, vector::text, terms FROM passage")
            _insert(copy, "passage", passage, ((*row[:5], _as_bytes(row[5]), row[6]) for row in vectors))
            copy.execute("INSERT INTO change (memory) SELECT key FROM memory")
    finally:
        copy.close()


def _insert(copy: sqlite3.Connection, table: str, columns: str, rows: Iterable[Iterable[object]]) -> None:
    places = ", ".join("?" for _ in columns.split(","))
    copy.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", (tuple(row) for row in rows))


def _as_bytes(vector: str) -> bytes:
    return np.array(vector.strip("[]").split(","), np.float16).tobytes()
