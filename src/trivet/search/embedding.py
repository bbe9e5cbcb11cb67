"""Which embedder makes vectors now, which ones answer, and the change from one to another while recalls go on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trivet.bounded_cache import MIB, BoundedCache
from trivet.errors import EmbedderError
from trivet.models.embed.batching import batched, start_anew
from trivet.models.embed.registry import load_maker
from trivet.store.records import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trivet.breaker import Breaker
    from trivet.models.embed.base import Embedder
    from trivet.store import Store

# `why_not` and a repeated recall ask for the same vector again.
QUERIES_BYTES = 4 * MIB
# Memories that were just written and are recalled before the worker has stored their vectors.
DOCUMENTS_BYTES = 4 * MIB


class Embedding:
    """The configured embedder and, while the store moves to it, the one whose vectors still answer."""

    def __init__(self, store: Store, spec: str, configured: Embedder | None) -> None:
        self._store = store
        self._spec = spec
        self._configured = configured
        self._others: dict[str, Embedder] = {}
        self._queries: BoundedCache[tuple[str, str], NDArray[np.float32]] = BoundedCache(QUERIES_BYTES)
        self._documents: BoundedCache[tuple[str, str, int], NDArray[np.float32]] = BoundedCache(DOCUMENTS_BYTES)
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

    def adopt(self) -> None:
        """Makes the configured model known to the store, which asks for every memory's vectors if it is new.

        A hosted model may have to be asked for its dimension, so this is the worker's business and never a caller's.
        """
        if self._configured is not None and self._known() is None:
            self._store.vectors.adopt(self._configured.identity, self._spec, self._configured.dimension)

    def renew(self) -> None:
        """As `adopt`, but a known model whose vectors have another width by now is dropped and adopted anew."""
        known = self._known()
        if self._configured is not None and known is not None and known.dimension != self._configured.dimension:
            self._store.vectors.remove(known)
        self.adopt()

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
        return next((model for model in self._store.vectors.models() if model.serving), None)

    def models(self) -> tuple[Model, ...]:
        return self._store.vectors.models()

    def embedder_of(self, model: Model) -> Embedder:
        """The embedder that made a model's vectors; an earlier one is loaded by the name it was stored with."""
        if self._configured is not None and model.identity == self._configured.identity:
            return self._configured
        with self._lock:
            if model.identity not in self._others:
                self._others[model.identity] = load_maker(model.spec, model.identity)
            return self._others[model.identity]

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
            start_anew(self.embedder_of(serving))

    def _breaker(self, model: Model) -> Breaker | None:
        """Of the endpoint that makes a model's vectors; None where that is no endpoint, or cannot be loaded."""
        try:
            found: Breaker | None = getattr(self.embedder_of(model), "breaker", None)
        except EmbedderError:  # the leg meets it too, and tells it
            return None
        return found

    def query_vector(self, model: Model, text: str) -> NDArray[np.float32]:
        name = (model.identity, text)
        vector = self._queries.get(name)
        if vector is None:
            vector = batched(self.embedder_of(model)).embed_query(text)
            self._queries.put(name, vector)
        return vector

    def document_vectors(self, model: Model, name: tuple[str, int], texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of a memory's passages, made now. `name` is its id and revision: recalls in a row ask again."""
        key = (model.identity, *name)
        vectors = self._documents.get(key)
        if vectors is None:
            vectors = self.embedder_of(model).embed_documents(texts)
            self._documents.put(key, vectors)
        return vectors

    def promote(self) -> None:
        """Once the configured model has a vector for everything, it answers, and the others go."""
        configured = self._known()
        if configured is None or (configured.serving and len(self._store.vectors.models()) == 1):
            return
        if self._store.jobs.backlog(configured).waiting == 0:
            self._store.vectors.serve(configured)

    def _known(self) -> Model | None:
        return next((model for model in self._store.vectors.models() if model.identity == self.identity), None)
