"""Every store under the contract, and helpers to create its contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray

from trivet.analyse import analyse
from trivet.common.clock import moment, moment_or_none
from trivet.common.ids import new_id
from trivet.memory.similarity import fingerprint
from trivet.search.memory_times import encode_mentioned_times
from trivet.search.recipe import DEFAULT
from trivet.store.postgres import PostgresStore
from trivet.store.records import AddResult, Bm25, Document, EmbeddingJob, Entry, Model, Passage
from trivet.store.relational.store import RelationalStore as Store
from trivet.store.sqlite.store import SqliteStore
from trivet.types import LOCAL, Filter, Link, LinkKind, Memory, Source, State

Open = Callable[[], Store]

# Name of the file in a store's folder that holds the address of its PostgreSQL database.
ADDRESS = "postgres.url"
STORES: Mapping[str, Callable[[Path], Store]] = {
    "postgres": lambda folder: PostgresStore((folder / ADDRESS).read_text()),
    "sqlite": lambda folder: SqliteStore(folder / "memory.db"),
}

EARLY = "2024-01-01T00:00:00.000000Z"
PLAIN_BM25 = Bm25(k1=1.2, b=0.75, content=1.0, title=1.0, keywords=0.5, tags=0.5, category=0.25)


def memory(
    content: str,
    *,
    id: str | None = None,
    title: str | None = None,
    category: str = "facts",
    tags: tuple[str, ...] = (),
    importance: float = 0.5,
    keywords: tuple[str, ...] = (),
    scope: str = "default",
    source: str | None = None,
    created_at: str = EARLY,
    valid_from: str | None = None,
    valid_to: str | None = None,
    state: State = "active",
    sensitive: bool = False,
    owner: str = LOCAL,
) -> Memory:
    return Memory(
        id=id or new_id(),
        content=content,
        title=title,
        category=category,
        tags=tags,
        importance=importance,
        expanded_keywords=keywords,
        scope=scope,
        source=Source(uri=source) if source else None,
        created_at=moment(created_at),
        updated_at=moment(created_at),
        valid_from=moment_or_none(valid_from),
        valid_to=moment_or_none(valid_to),
        state=state,
        sensitive=sensitive,
        owner=owner,
    )


def document(of: Memory) -> Document:
    return Document(
        content=tuple(analyse(of.content)),
        title=tuple(analyse(of.title or "")),
        keywords=tuple(term for keyword in of.expanded_keywords for term in analyse(keyword)),
        tags=tuple(term for tag in of.tags for term in analyse(tag)),
        category=tuple(analyse(of.category)),
        fingerprint=fingerprint(of.content),
        times=encode_mentioned_times(of),
    )


def add(store: Store, *memories: Memory) -> list[AddResult]:
    return store.memories.add_many([Entry(one, document(one)) for one in memories])


def replace(store: Store, new: Memory, action: str = "edit") -> Memory:
    return store.memories.replace(new, document(new), action)


def link(source: Memory, kind: LinkKind, target: Memory) -> Link:
    return Link(kind=kind, source=source.id, target=target.id, created_at=moment(EARLY))


def found(store: Store, words: str, filter: Filter | None = None, depth: int = 100) -> list[str]:
    """Return the ids that the lexical index finds for words, best first."""
    terms = analyse(words)
    scored = store.lexical.search(terms, (), 0, filter or Filter(), DEFAULT.bm25, depth)
    return [one.id for one in scored]


def near(
    store: Store,
    model: Model,
    vector: Sequence[float],
    filter: Filter | None = None,
    depth: int = 100,
) -> list[str]:
    """Return the ids that the vector index finds for a vector, best first."""
    scored = store.vectors.search(model, unit(*vector), filter or Filter(), depth)
    return [one.id for one in scored]


def unit(*numbers: float) -> NDArray[np.float32]:
    vector = np.array(numbers, np.float32)
    scaled: NDArray[np.float32] = vector / np.linalg.norm(vector)
    return scaled


def whole(job: EmbeddingJob) -> tuple[Passage, ...]:
    return (Passage(0, 0, len(job.content)),)


def embed(
    store: Store, model: Model, vectors: Mapping[str, Sequence[float]], most: int = 100_000
) -> None:
    """Finish every job of a model with the vector given for its content."""
    jobs = store.jobs.lease(model, most, 60)
    store.jobs.finish([(job, whole(job), unit(*vectors[job.content])[None, :]) for job in jobs])


def administrators(folder: Path) -> str:
    """Return the address of a store's database with full rights."""
    return (folder / ADDRESS).read_text().replace("trivet@", "postgres@")


def at_rest(folder: Path) -> bytes:
    """Return the bytes of a store's files, or all rows of all tenants in its tables.

    PostgreSQL overwrites deleted rows only when it vacuums, so there only the rows count.
    """
    if not (folder / ADDRESS).exists():
        return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())
    with psycopg.connect(administrators(folder)) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_stat_user_tables ORDER BY relname"
        ).fetchall()
        rows = [
            row
            for (table,) in tables
            for row in connection.execute(f"SELECT t::text FROM {table} AS t")
        ]
    return "\n".join(row[0] for row in rows).encode()
