"""PostgreSQL databases of earlier Trivet versions, from migrations and handwritten rows."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import psycopg

from support.stores import document
from trivet.analyse import ANALYSER_VERSION
from trivet.store.postgres.migrate import migrate
from trivet.types import Memory

_MEMORY = """INSERT INTO memory (key, id, content, category, tags, importance, confidence, expanded_keywords, scope,
    created_at, updated_at, state, sensitive, revision, length)
    VALUES (%s, %s, %s, 'facts', %s, 0.5, 1, '[]', 'default', %s, %s, %s, %s, 1, %s)"""


def make_version(url: str, version: int, tenant: str, memories: tuple[Memory, ...]) -> None:
    """Create the schema of a version unless it exists, and add one tenant's memories."""
    migrate(url, "test", version)
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('trivet.tenant', %s, true)", (tenant,))
        connection.execute(
            "INSERT INTO tenant (tenant, last_key) VALUES (%s, %s)", (tenant, len(memories))
        )
        connection.execute(
            "INSERT INTO meta (name, value) VALUES ('analyser', %s)", (str(ANALYSER_VERSION),)
        )
        for key, one in enumerate(memories, 1):
            _write(connection, key, one)
            if version > 1:  # the migration that added the graph queued a reading for each
                reading = "INSERT INTO reading (memory, reader, revision) VALUES (%s, 'rules', 1)"
                connection.execute(reading, (key,))


def _write(connection: psycopg.Connection[Any], key: int, one: Memory) -> None:
    terms = document(one)
    state = (one.state, one.sensitive, terms.length)
    connection.execute(
        _MEMORY,
        (key, one.id, one.content, json.dumps(one.tags), one.created_at, one.updated_at, *state),
    )
    for tag in one.tags:
        connection.execute("INSERT INTO memory_tag (memory, tag) VALUES (%s, %s)", (key, tag))
    snapshot = msgspec.json.encode(one).decode()
    columns = "INSERT INTO revision (memory, revision, changed_at, action, snapshot) VALUES (%s, 1, %s, 'remember', %s)"
    connection.execute(columns, (key, one.created_at, snapshot))
    fields = (terms.content, terms.title, terms.keywords, terms.tags, terms.category)
    columns = "INSERT INTO lexical (memory, content, title, keywords, tags, category) VALUES (%s, %s, %s, %s, %s, %s)"
    connection.execute(columns, (key, *(" ".join(field) for field in fields)))
    for term in sorted({term for field in fields for term in field}):
        columns = "INSERT INTO posting (term, memory, content, title, keywords, tags, category)"
        counts = [field.count(term) for field in fields]
        connection.execute(f"{columns} VALUES (%s, %s, %s, %s, %s, %s, %s)", (term, key, *counts))
