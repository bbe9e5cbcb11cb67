"""The embedders of a store: which one writes vectors, which one answers, and moving a store."""

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

# `why_not` and repeated recalls need the same query vectors.
QUERIES_BYTES = 4 * MIB
# Vectors of new memories that are recalled before the worker has stored them.
DOCUMENTS_BYTES = 4 * MIB

# Names come from a file that anyone may have written, and are printed in terminals.
LONGEST_NAME = 200


class _PendingVector:
    def __init__(self, vector: Future[NDArray[np.float32]], within_ms: int) -> None:
        self._vector = vector
        self._until = time.monotonic() + within_ms / 1000

    def vector(self) -> NDArray[np.float32]:
        return self._vector.result(max(0.0, self._until - time.monotonic()))


class Embedding:
    """The vectors of a store and the embedders named by the settings.

    Only the configured, earlier and bundled embedders are ever called, and only the configured one
    writes vectors.
    """

    def __init__(
        self, store: Store, spec: str, configured: Embedder | None, earlier: Sequence[Embedder] = ()
    ) -> None:
        self._store = store
        self._spec = spec
        self._configured = configured
        self._others: dict[str, Embedder] = {one.identity: one for one in earlier}
        self._model_cache: tuple[tuple[Model, ...], tuple[Model, ...]] = (
            (),
            (),
        )  # as stored, and with printable names
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
        """Return the embedder's address, to be shown to the store's owner only."""
        return getattr(self._configured, "endpoint", None)

    def be_patient(self) -> None:
        """Use the document time limits for queries too, for measurements."""
        for embedder in (self._configured, *self._others.values()):
            if (wait := getattr(embedder, "be_patient", None)) is not None:
                wait()

    def adopt(self) -> None:
        """Make the configured model the store's if that has none, or an older bundled one.

        May call a hosted model, so only the worker calls this.
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
        known = self._known()
        if (
            known is not None
            and serving.identity not in self._others
            and shipped(serving.identity) is None
        ):
            self._store.vectors.serve(known)

    def drop_unused(self) -> None:
        serving = self.serving()
        if self._configured is None or serving is None or self._known() is not None:
            return
        if self._store.vectors.is_unused(serving):
            self._store.vectors.remove(serving)

    def move(self) -> Model | None:
        """Start moving the store to the configured model, and drop an unfinished move."""
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
        """Return a warning if the store's model is not the configured one."""
        serving = self.serving()
        if self._configured is None or serving is None or self._known() is not None:
            return None
        return (
            f"the vectors of this store are of {serving.identity}, but the setting embedder names "
            f"{self.identity}, so no vectors are written. Set embedder to the store's model, or "
            "move the store: `trivet reindex --vectors`"
        )

    def probe(self) -> str:
        assert self._configured is not None
        self._configured.embed_query("is anybody there")
        return self._configured.identity

    def check_key(self) -> None:
        if self._configured is None or self._configured.local:
            return
        from trivet.models.embed.hosted import HostedEmbedder

        if isinstance(self._configured, HostedEmbedder):
            self._configured.check_key()

    def serving(self) -> Model | None:
        return next((model for model in self.models() if model.serving), None)

    def models(self) -> tuple[Model, ...]:
        stored = self._store.vectors.models()
        known, shown = self._model_cache
        if stored is not known:
            shown = tuple(map(_as_shown, stored))
            self._model_cache = (stored, shown)
        return shown

    def embedder_of(self, model: Model) -> Embedder:
        """Return the embedder of a model, or raise EmbedderError if none here fits."""
        if self._configured is not None and model.identity == self._configured.identity:
            return self._configured
        with self._lock:
            if model.identity not in self._others:
                found = shipped(model.identity)
                if found is None:
                    raise EmbedderError(
                        f"the vectors of this store are of {model.identity}, which is neither in "
                        "your settings nor bundled with Trivet, so it is not called. Name it in "
                        "the setting embedder or earlier_embedders, or move the store to your "
                        "model: `trivet reindex --vectors`"
                    )
                self._others[model.identity] = found
            return self._others[model.identity]

    def floor(self, model: Model) -> float:
        """Return the lowest cosine that counts, comparable to -1 for MiniLM."""
        background = self.background(model)
        return background.mean - DEVIATIONS * background.deviation

    def background_now(self) -> SimilarityBaseline:
        serving = self.serving()
        return self.background(serving) if serving else UNMEASURED_BASELINE

    def background(self, model: Model) -> SimilarityBaseline:
        try:
            return similarity_baseline_of(self.embedder_of(model))
        except EmbedderError:  # the dense leg reports it
            return UNMEASURED_BASELINE

    def resting(self, text: str) -> str | None:
        serving = self.serving()
        if serving is None or self._queries.get((serving.identity, text)) is not None:
            return None
        breaker = self._breaker(serving)
        return breaker.refusal() if breaker else None

    def late(self) -> None:
        serving = self.serving()
        breaker = self._breaker(serving) if serving else None
        if serving and breaker:
            breaker.late()
            replace_hung_batch(self.embedder_of(serving))

    def _breaker(self, model: Model) -> CircuitBreaker | None:
        try:
            found: CircuitBreaker | None = getattr(self.embedder_of(model), "breaker", None)
        except EmbedderError:  # the dense leg reports it
            return None
        return found

    def begin(self, text: str, within_ms: int) -> None:
        """Start embedding a query in the background; `query_vector` waits at most `within_ms`.

        Only for a model in this process: a hosted one would also receive uncorrected queries.
        """
        serving = next(
            (model for model in self._model_cache[1] or self.models() if model.serving), None
        )
        if serving is None or serving.identity != self.identity or self._is_pending(serving, text):
            return
        try:
            vector = batched(self.embedder_of(serving)).begin(text)
        except Exception:  # noqa: BLE001 - `query_vector` meets and reports it
            return
        if vector is not None:
            name = (serving.identity, text)
            self._begun[name] = _PendingVector(vector, within_ms)
            vector.add_done_callback(lambda made: self._cache_finished(name, made))

    def _cache_finished(self, name: tuple[str, str], made: Future[NDArray[np.float32]]) -> None:
        if made.exception() is None:
            self._queries.put(name, made.result())
        self._begun.pop(name, None)  # on failure, the next caller embeds again and gets the error

    def is_available(self, text: str) -> bool:
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
        """Return passages' vectors; with `keep`, cache new ones."""
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
        from numpy import stack  # imported late: commands without vectors start faster

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
        """Serve the configured model once it has a vector for every passage."""
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
        name = DEFAULT if self._spec == DEFAULT else identity
        self._store.vectors.adopt(identity, name, self._configured.dimension)


def _as_shown(model: Model) -> Model:
    name = "".join(filter(str.isprintable, without_address(model.identity)))[:LONGEST_NAME]
    return msgspec.structs.replace(model, identity=name)
