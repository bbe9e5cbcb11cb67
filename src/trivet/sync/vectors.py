"""Reuse of the server's vectors by a laptop with the same model and text preparation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from trivet.errors import EmbedderError
from trivet.memory.engine import Engine
from trivet.memory.passages import PASSAGE_VERSION, JobPassages
from trivet.models.embed.base import checked
from trivet.store.records import EmbeddingJob, Model, Passage
from trivet.store.relational.tables.sync_feed import last_change
from trivet.sync.laptop_state import load, save
from trivet.sync.messages import Embedded, VectorsRequest, VectorsSummary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Bounds a request to about half a megabyte.
MEMORIES_PER_REQUEST = 500
# Half precision is exact to a thousandth.
UNIT_LENGTH_TOLERANCE = 0.01
# The lowest cosine between both sides' vectors of one text; half precision alone leaves over .999.
MIN_SIMILARITY = 0.98

EmbeddedJob = tuple[EmbeddingJob, Sequence[Passage], "NDArray[np.float32]"]


# ---- the server's side


def stored_vectors(
    engine: Engine, request: VectorsRequest
) -> tuple[list[Embedded], VectorsSummary]:
    """Return the vectors of those memories that the user may read."""
    model = _model_of(engine, request.identity)
    if model is None or request.preparation != PASSAGE_VERSION:
        return [], VectorsSummary(identity="", count=0)
    heads = _current_revisions(engine, request.ids)
    spans = engine.store.vectors.spans(model, list(heads))
    rows = dict(_rows(engine, model, {key: id for id, (key, _) in heads.items()}))
    still = _current_revisions(engine, list(rows))  # leave out memories edited meanwhile
    found = [
        _embedded(model, id, heads[id][1], spans[id], vectors)
        for id, vectors in rows.items()
        if still.get(id) == heads[id] and len(spans.get(id, ())) == len(vectors)
    ]
    return found, VectorsSummary(identity=model.identity, count=len(found))


def _model_of(engine: Engine, identity: str) -> Model | None:
    return next(
        (model for model in engine.store.vectors.models() if model.identity == identity), None
    )


def _current_revisions(engine: Engine, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    with engine.store.feed.snapshot() as connection:
        values = {"ids": msgspec.json.encode(list(ids)).decode(), "viewer": engine.viewer}
        rows = connection.execute(connection.sql("sync")["heads_of"], values).fetchall()
    return {row["id"]: (row["key"], row["rev"]) for row in rows if row["rev"]}


def _rows(
    engine: Engine, model: Model, ids: dict[int, str]
) -> Iterator[tuple[str, NDArray[np.float16]]]:
    for rows in engine.store.vectors.of_memories(model, list(ids)):
        vectors = rows.vectors.reshape(len(rows.keys), model.dimension)
        order = sorted(range(len(rows.keys)), key=lambda at: (rows.keys[at], rows.ordinals[at]))
        for key, places in groupby(order, key=lambda at: rows.keys[at]):
            yield ids[key], vectors[list(places)]


def _embedded(
    model: Model, id: str, rev: str, passages: Sequence[Passage], vectors: NDArray[np.float16]
) -> Embedded:
    spans = tuple((one.start, one.stop) for one in sorted(passages, key=lambda one: one.ordinal))
    data = vectors.astype("<f2").tobytes()
    return Embedded(
        id=id, rev=rev, spans=spans, vectors=data, sum=_sum(model.identity, id, rev, data)
    )


def _sum(identity: str, id: str, rev: str, vectors: bytes) -> str:
    return hashlib.blake2b(
        f"{identity}\n{id}\n{rev}\n".encode() + vectors, digest_size=16
    ).hexdigest()


# ---- the laptop's side


class VectorsTaken(msgspec.Struct, frozen=True):
    taken: int = 0
    refused: int = 0
    reason: str | None = None

    def __add__(self, other: VectorsTaken) -> VectorsTaken:
        return VectorsTaken(
            self.taken + other.taken, self.refused + other.refused, self.reason or other.reason
        )


class MissingVectors:
    """The memories that wait for embedding, each requested once per exchange."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._after = 0

    def next(self) -> tuple[VectorsRequest | None, dict[str, Any]]:
        """Return the next request and its memories' rows by id; None if nothing waits."""
        model = self._model()
        if model is None:
            return None, {}
        connection = self._engine.store.feed.database.read()
        values = {"model": model.model, "after": self._after, "limit": MEMORIES_PER_REQUEST}
        rows = connection.execute(connection.sql("replica")["without_vectors"], values).fetchall()
        if not rows:
            return None, {}
        self._after = rows[-1]["memory"]
        waiting = {row["id"]: row for row in rows}
        return VectorsRequest(
            identity=model.identity, preparation=PASSAGE_VERSION, ids=tuple(waiting)
        ), waiting

    def _model(self) -> Model | None:
        embedding = self._engine.embedding
        if embedding.identity is None:
            return None
        if not self._after and embedding.serving() is None:  # a new store: create the jobs now
            try:
                embedding.adopt()
            except EmbedderError:  # the worker meets and reports it too
                return None
        return _model_of(self._engine, embedding.identity)

    def take(self, received: Sequence[Embedded], waiting: dict[str, Any]) -> VectorsTaken:
        """Store the valid vectors; the other memories wait to be embedded here."""
        model = self._model()
        if model is None:
            return VectorsTaken()
        right: list[EmbeddedJob] = []
        reason = None
        for one in received:
            try:
                right.append(_checked(model, one, waiting.get(one.id)))
            except EmbedderError as error:
                reason = reason or str(error)
        if right and not self._matches_local_model(model, right):
            return VectorsTaken(
                0,
                len(received),
                "the server's vectors differ from those of this machine for the same text",
            )
        self._store(right)
        return VectorsTaken(len(right), len(received) - len(right), reason)

    def _matches_local_model(self, model: Model, right: Sequence[EmbeddedJob]) -> bool:
        """Compare the shortest text's vector with a local model's; skip hosted models."""
        embedder = self._engine.embedding.embedder_of(model)
        if not embedder.local:
            return True
        job, passages, vectors = min(right, key=lambda one: len(one[0].content))
        ours = embedder.embed_documents(JobPassages(job, tuple(passages)).texts[:1])[0]
        return bool(float(ours @ vectors[0]) >= MIN_SIMILARITY)

    def _store(self, right: Sequence[EmbeddedJob]) -> None:
        # Vectors are not sent: skip these changes.
        with self._engine.store.feed.transaction() as connection:
            state, before = load(connection), last_change(connection)
            self._engine.store.jobs.finish(right)
            if state is not None and state.change == before:
                save(connection, msgspec.structs.replace(state, change=last_change(connection)))


def _checked(model: Model, received: Embedded, row: Any) -> EmbeddedJob:
    import numpy as np

    if row is None or received.rev != row["head"]:
        raise EmbedderError(
            f"the server's vectors of {received.id} are of another text than the one here"
        )
    if received.sum != _sum(model.identity, received.id, received.rev, received.vectors):
        raise EmbedderError(f"the vectors of {received.id} do not match their checksum")
    if len(received.vectors) != 2 * model.dimension * len(received.spans) or not received.spans:
        raise EmbedderError(
            f"the vectors of {received.id} do not have the {model.dimension} dimensions of "
            f"{model.identity}"
        )
    length = len(row["content"])
    if any(not 0 <= start < stop <= length for start, stop in received.spans):
        raise EmbedderError(
            f"the vectors of {received.id} are of passages that its text does not have"
        )
    count = len(received.spans)
    matrix = np.frombuffer(received.vectors, "<f2").reshape(count, -1).astype(np.float32)
    vectors = checked(matrix, count, model.dimension, "the server")
    if float(np.abs(np.linalg.norm(matrix, axis=1) - 1).max()) > UNIT_LENGTH_TOLERANCE:
        raise EmbedderError(f"the vectors of {received.id} are not of unit length")
    passages = tuple(
        Passage(place, start, stop) for place, (start, stop) in enumerate(received.spans)
    )
    return (
        EmbeddingJob(row["memory"], model.model, row["revision"], 0, row["title"], row["content"]),
        passages,
        vectors,
    )
