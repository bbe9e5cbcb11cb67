"""Which embedder makes a store's vectors, which ones answer, and the move from one to another while recalls go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import msgspec

from trivet.common.bounded_cache import MIB, BoundedCache
from trivet.errors import EmbedderError
from trivet.models.embed.base import (
    DEVIATIONS,
    UNMEASURED_BASELINE,
    SimilarityBaseline,
    similarity_baseline_of,
)
from trivet.models.embed.batching import batched, replace_hung_batch
from trivet.models.embed.registry import DEFAULT, is_upgrade, shipped, without_address
from trivet.store.records import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trivet.common.breaker import CircuitBreaker
    from trivet.models.embed.base import Embedder
    from trivet.store import Store

# `why_not` and a repeated recall ask for the same vector again.
QUERIES_BYTES = 4 * MIB
# Memories that were just written and are recalled before the worker has stored their vectors.
DOCUMENTS_BYTES = 4 * MIB

# Names come out of a file that may be anybody's, and are shown in terminals.
LONGEST_NAME = 200


class _PendingVector:
    """A query's vector that is on its way."""

    def __init__(self, vector: Future[NDArray[np.float32]], within_ms: int) -> None:
        self._vector = vector
        self._until = time.monotonic() + within_ms / 1000

    def vector(self) -> NDArray[np.float32]:
        return self._vector.result(max(0.0, self._until - time.monotonic()))


class Embedding:
    """The store's vectors and the embedders of the settings.

    A store names the model of its vectors. Whom this process asks comes from its settings alone: the configured
    embedder, the earlier ones that the user lists, and the model that comes with Trivet. A store whose model is none of
    these is read by words, and nothing is sent anywhere.

    A process whose embedder is another than the store's writes no vectors of its own into it; the owner moves a store
    on purpose (`move`). While it moves, the vectors of the model before it answer.
    """

    def __init__(
        self, store: Store, spec: str, configured: Embedder | None, earlier: Sequence[Embedder] = ()
    ) -> None:
        self._store = store
        self._spec = spec
        self._configured = configured
        self._others: dict[str, Embedder] = {one.identity: one for one in earlier}
        self._shown: tuple[tuple[Model, ...], tuple[Model, ...]] = (
            (),
            (),
        )  # as stored, and as they are told
        self._queries: BoundedCache[tuple[str, str], NDArray[np.float32]] = BoundedCache(
            QUERIES_BYTES
        )
        self._documents: BoundedCache[tuple[str, str], NDArray[np.float32]] = BoundedCache(
            DOCUMENTS_BYTES
        )
        self._begun: dict[tuple[str, str], _PendingVector] = {}
        self._lock = threading.Lock()

    @property
    def enabled(self) -> bool:
        return self._configured is not None

    @property
    def identity(self) -> str | None:
        return self._configured.identity if self._configured else None

    @property
    def local(self) -> bool:
        return self._configured is not None and self._configured.local

    @property
    def endpoint(self) -> str | None:
        """Where the configured embedder is asked; None for one that runs inside this process. For the owner alone."""
        return getattr(self._configured, "endpoint", None)

    def be_patient(self) -> None:
        """Has hosted embedders waited for with a query as long as with a document: for measurements."""
        for embedder in (self._configured, *self._others.values()):
            if (wait := getattr(embedder, "be_patient", None)) is not None:
                wait()

    def adopt(self) -> None:
        """Makes the configured model the store's where the store has none yet, or only what a release has outdated.

        A hosted model may have to be asked for its dimension, so this is the worker's business and never a caller's.
        """
        if self._configured is None or self._known() is not None:
            return
        self.drop_unused()
        serving = self.serving()
        if serving is None:
            self._enter()
        elif is_upgrade(self._spec, serving.spec, serving.identity):
            self._enter()
            self._leave(serving)

    def _leave(self, serving: Model) -> None:
        """Vectors that no model here can be asked for answer nothing: the new ones do from the first on."""
        known = self._known()
        if (
            known is not None
            and serving.identity not in self._others
            and shipped(serving.identity) is None
        ):
            self._store.vectors.serve(known)

    def drop_unused(self) -> None:
        """A store without any memory to embed is nobody's yet: it takes the embedder of the first who fills it."""
        serving = self.serving()
        if self._configured is None or serving is None or self._known() is not None:
            return
        if self._store.vectors.is_unused(serving):
            self._store.vectors.remove(serving)

    def move(self) -> Model | None:
        """Has the store move to the configured model, because its owner said so; None without an embedder.

        A known model whose vectors have another width by now is dropped and entered anew, and so is a move to a third
        model that was not finished.
        """
        if self._configured is None:
            return None
        for model in self.models():
            outgrown = (
                model.identity == self.identity and model.dimension != self._configured.dimension
            )
            if outgrown or not (model.serving or model.identity == self.identity):
                self._store.vectors.remove(model)
        if self._known() is None:
            self._enter()
        return self._known()

    def difference(self) -> str | None:
        """What to tell where the store's vectors are of another model than the configured one; None if they agree."""
        serving = self.serving()
        if self._configured is None or serving is None or self._known() is not None:
            return None
        return (
            f"the vectors of this store are of {serving.identity}, and the setting embedder names {self.identity}, "
            "which writes none into it. Set embedder to the store's, or move the store: `trivet reindex --vectors`"
        )

    def probe(self) -> str:
        """Asks the configured embedder for a vector and returns its identity, or raises what it raised."""
        assert self._configured is not None
        self._configured.embed_query("is anybody there")
        return self._configured.identity

    def check_key(self) -> None:
        """Raises an error that says which key a hosted embedder lacks, if it lacks one."""
        if self._configured is None or self._configured.local:
            return
        from trivet.models.embed.hosted import HostedEmbedder

        if isinstance(self._configured, HostedEmbedder):
            self._configured.check_key()

    def serving(self) -> Model | None:
        """The model whose vectors answer. None before the first vector, or with no embedder."""
        return next((model for model in self.models() if model.serving), None)

    def models(self) -> tuple[Model, ...]:
        stored = self._store.vectors.models()
        known, shown = self._shown
        if stored is not known:
            shown = tuple(map(_as_shown, stored))
            self._shown = (stored, shown)
        return shown

    def embedder_of(self, model: Model) -> Embedder:
        """Who makes a model's vectors: an embedder of the settings or the one that Trivet brings, and nobody else."""
        if self._configured is not None and model.identity == self._configured.identity:
            return self._configured
        with self._lock:
            if model.identity not in self._others:
                found = shipped(model.identity)
                if found is None:
                    raise EmbedderError(
                        f"the vectors of this store are of {model.identity}, which neither your settings name nor "
                        "Trivet brings along, so it is not asked. Name it in the setting embedder or "
                        "earlier_embedders, or move the store to yours: `trivet reindex --vectors`"
                    )
                self._others[model.identity] = found
            return self._others[model.identity]

    def floor(self, model: Model) -> float:
        """As low as cosines of the model count: as far below those of unrelated texts as -1 is for MiniLM's."""
        background = self.background(model)
        return background.mean - DEVIATIONS * background.deviation

    def background_now(self) -> SimilarityBaseline:
        """Of the vectors that answer now."""
        serving = self.serving()
        return self.background(serving) if serving else UNMEASURED_BASELINE

    def background(self, model: Model) -> SimilarityBaseline:
        """How near unrelated texts are to the model. One whom nobody here can ask is not searched by either."""
        try:
            return similarity_baseline_of(self.embedder_of(model))
        except EmbedderError:  # the dense leg says so
            return UNMEASURED_BASELINE

    def resting(self, text: str) -> str | None:
        """Why no vector of this query can be had now; None if it can, or is known already."""
        serving = self.serving()
        if serving is None or self._queries.get((serving.identity, text)) is not None:
            return None
        breaker = self._breaker(serving)
        return breaker.refusal() if breaker else None

    def late(self) -> None:
        """A recall has waited for a query's vector as long as it may."""
        serving = self.serving()
        breaker = self._breaker(serving) if serving else None
        if serving and breaker:
            breaker.late()
            replace_hung_batch(self.embedder_of(serving))

    def _breaker(self, model: Model) -> CircuitBreaker | None:
        """Of the endpoint that makes a model's vectors; None where that is no endpoint, or cannot be loaded."""
        try:
            found: CircuitBreaker | None = getattr(self.embedder_of(model), "breaker", None)
        except EmbedderError:  # the leg meets it too, and tells it
            return None
        return found

    def begin(self, text: str, within_ms: int) -> None:
        """Has a query's vector made while the caller does something else; whoever asks for it waits so long at most.

        Only where the model runs inside this process: a hosted one would be told what a recall still mends. Which model
        answers, the store is asked once; after that it is the one of the last recall. If it is another by now, a vector
        is made for nothing.
        """
        serving = next((model for model in self._shown[1] or self.models() if model.serving), None)
        if serving is None or serving.identity != self.identity or self._is_pending(serving, text):
            return
        try:
            vector = batched(self.embedder_of(serving)).begin(text)
        except Exception:
            return
        if vector is not None:
            name = (serving.identity, text)
            self._begun[name] = _PendingVector(vector, within_ms)
            vector.add_done_callback(lambda made: self._arrived(name, made))

    def _arrived(self, name: tuple[str, str], made: Future[NDArray[np.float32]]) -> None:
        if made.exception() is None:
            self._queries.put(name, made.result())
        self._begun.pop(
            name, None
        )  # whoever has not asked yet and finds no vector makes it, and hears what is wrong

    def is_available(self, text: str) -> bool:
        """Whether the query's vector is known or on its way, so that whoever asks for it need not be left behind."""
        serving = self.serving()
        return serving is not None and self._is_pending(serving, text)

    def _is_pending(self, model: Model, text: str) -> bool:
        name = (model.identity, text)
        return name in self._begun or self._queries.get(name) is not None

    def query_vector(self, model: Model, text: str) -> NDArray[np.float32]:
        name = (model.identity, text)
        begun = self._begun.get(name)
        if begun is not None:
            return begun.vector()
        vector = self._queries.get(name)
        if vector is None:
            vector = batched(self.embedder_of(model)).embed_query(text)
            self._queries.put(name, vector)
        return vector

    def document_vectors(
        self, model: Model, texts: Sequence[str], keep: bool = False
    ) -> NDArray[np.float32]:
        """The vectors of passages. What was embedded a moment ago is not embedded again: a memory that is saved is
        compared by its text, the next recalls want its vector, and the worker stores it.

        `keep` where others are going to want them.
        """
        embedder = self.embedder_of(model)
        known = {
            text: vector
            for text in texts
            if (vector := self._cached_document(model, embedder, text)) is not None
        }
        missing = [text for text in texts if text not in known]
        if not known and not keep:
            return embedder.embed_documents(missing)
        made = embedder.embed_documents(missing) if missing else ()
        for text, vector in zip(missing, made, strict=True):
            known[text] = vector
            if keep:
                self._documents.put((model.identity, text), vector)
        from numpy import stack  # a command that has no vectors to do with starts without it

        return stack([known[text] for text in texts])

    def _cached_document(
        self, model: Model, embedder: Embedder, text: str
    ) -> NDArray[np.float32] | None:
        name = (model.identity, text)
        vector = self._documents.get(name)
        if vector is None and getattr(embedder, "queries_as_documents", False):
            vector = self._queries.get(name)
        return vector

    def promote(self) -> None:
        """Once the model that the store moves to has a vector for everything, it answers, and the others go."""
        configured = self._known()
        if (
            configured is not None
            and not configured.serving
            and not self._store.jobs.backlog(configured).waiting
        ):
            self._store.vectors.serve(configured)

    def _known(self) -> Model | None:
        return next((model for model in self.models() if model.identity == self.identity), None)

    def _enter(self) -> None:
        assert self._configured is not None
        identity = self._configured.identity
        name = DEFAULT if self._spec == DEFAULT else identity  # never an address or a path
        self._store.vectors.adopt(identity, name, self._configured.dimension)


def _as_shown(model: Model) -> Model:
    name = "".join(filter(str.isprintable, without_address(model.identity)))[:LONGEST_NAME]
    return msgspec.structs.replace(model, identity=name)
