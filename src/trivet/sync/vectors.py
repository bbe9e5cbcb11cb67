"""Vectors beside the bundles: a laptop takes over what its server has embedded by the same model in the same way.

They come by a request of their own, for memories that wait here to be embedded, so a sync that was broken off goes on
with what is still missing. Whatever is wrong with them is told, and the laptop embeds itself.
"""

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

# A request for the vectors of so many memories: about half a megabyte.
MEMORIES_PER_REQUEST = 500
# A unit vector in half precision is one to a thousandth.
UNIT_LENGTH_TOLERANCE = 0.01
# How near the laptop's own vector of one text must be to what came for it: half precision leaves more than .999.
MIN_SIMILARITY = 0.98

EmbeddedJob = tuple[EmbeddingJob, Sequence[Passage], "NDArray[np.float32]"]


# ---- the server's side


def stored_vectors(
    engine: Engine, request: VectorsRequest
) -> tuple[list[Embedded], VectorsSummary]:
    """Of those memories that the user may read and that are embedded, as each is at this moment."""
    model = _model_of(engine, request.identity)
    if model is None or request.preparation != PASSAGE_VERSION:
        return [], VectorsSummary(identity="", count=0)
    heads = _heads(engine, request.ids)
    spans = engine.store.vectors.spans(model, list(heads))
    rows = dict(_rows(engine, model, {key: id for id, (key, _) in heads.items()}))
    still = _heads(engine, list(rows))  # whoever was edited meanwhile is left out
    told = [
        _embedded(model, id, heads[id][1], spans[id], vectors)
        for id, vectors in rows.items()
        if still.get(id) == heads[id] and len(spans.get(id, ())) == len(vectors)
    ]
    return told, VectorsSummary(identity=model.identity, count=len(told))


def _model_of(engine: Engine, identity: str) -> Model | None:
    return next(
        (model for model in engine.store.vectors.models() if model.identity == identity), None
    )


def _heads(engine: Engine, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
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
    """How many memories need not be embedded here, and why the vectors of others were refused."""

    taken: int = 0
    refused: int = 0
    reason: str | None = None

    def __add__(self, other: VectorsTaken) -> VectorsTaken:
        return VectorsTaken(
            self.taken + other.taken, self.refused + other.refused, self.reason or other.reason
        )


class MissingVectors:
    """What waits on a laptop to be embedded. Each memory is asked for once an exchange."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._after = 0

    def next(self) -> tuple[VectorsRequest | None, dict[str, Any]]:
        """The next request, and the rows of the memories that it names; None where nothing waits."""
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
        """The laptop's own. A store that was just made takes the configured one now, so that jobs wait for it."""
        embedding = self._engine.embedding
        if embedding.identity is None:
            return None
        if not self._after and embedding.serving() is None:
            try:
                embedding.adopt()
            except EmbedderError:  # the worker meets it too, and tells it
                return None
        return _model_of(self._engine, embedding.identity)

    def take(self, told: Sequence[Embedded], waiting: dict[str, Any]) -> VectorsTaken:
        """Stores what is right. What is not waits to be embedded here, as if nothing had come."""
        model = self._model()
        if model is None:
            return VectorsTaken()
        right: list[EmbeddedJob] = []
        reason = None
        for one in told:
            try:
                right.append(_checked(model, one, waiting.get(one.id)))
            except EmbedderError as error:
                reason = reason or str(error)
        if right and not self._matches_local_model(model, right):
            return VectorsTaken(
                0,
                len(told),
                "the server's vectors are not like those that this machine makes of the same text",
            )
        self._store(right)
        return VectorsTaken(len(right), len(told) - len(right), reason)

    def _matches_local_model(self, model: Model, right: Sequence[EmbeddedJob]) -> bool:
        """Whether the shortest text has here the vector that came for it; a hosted model is not asked for that."""
        embedder = self._engine.embedding.embedder_of(model)
        if not embedder.local:
            return True
        job, passages, vectors = min(right, key=lambda one: len(one[0].content))
        ours = embedder.embed_documents(JobPassages(job, tuple(passages)).texts[:1])[0]
        return bool(float(ours @ vectors[0]) >= MIN_SIMILARITY)

    def _store(self, right: Sequence[EmbeddedJob]) -> None:
        """Vectors are no news to send: the record of changes is read on from after them."""
        with self._engine.store.feed.transaction() as connection:
            state, before = load(connection), last_change(connection)
            self._engine.store.jobs.finish(right)
            if state is not None and state.change == before:
                save(connection, msgspec.structs.replace(state, change=last_change(connection)))


def _checked(model: Model, told: Embedded, row: Any) -> EmbeddedJob:
    """What came, if it is of the text that is here and of the length that the model makes."""
    import numpy as np

    if row is None or told.rev != row["head"]:
        raise EmbedderError(
            f"the server told vectors of {told.id} that are of another text than the one here"
        )
    if told.sum != _sum(model.identity, told.id, told.rev, told.vectors):
        raise EmbedderError(f"the vectors of {told.id} do not fit their checksum")
    if len(told.vectors) != 2 * model.dimension * len(told.spans) or not told.spans:
        raise EmbedderError(
            f"the vectors of {told.id} are not of the {model.dimension} numbers that {model.identity} makes"
        )
    length = len(row["content"])
    if any(not 0 <= start < stop <= length for start, stop in told.spans):
        raise EmbedderError(f"the vectors of {told.id} are of passages that its text does not have")
    matrix = np.frombuffer(told.vectors, "<f2").reshape(len(told.spans), -1).astype(np.float32)
    vectors = checked(matrix, len(told.spans), model.dimension, "the server")
    if float(np.abs(np.linalg.norm(matrix, axis=1) - 1).max()) > UNIT_LENGTH_TOLERANCE:
        raise EmbedderError(f"the vectors of {told.id} are not of unit length")
    passages = tuple(Passage(place, start, stop) for place, (start, stop) in enumerate(told.spans))
    return (
        EmbeddingJob(row["memory"], model.model, row["revision"], 0, row["title"], row["content"]),
        passages,
        vectors,
    )
