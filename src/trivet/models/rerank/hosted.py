"""Rerankers behind an endpoint: Cohere, Jina and Text Embeddings Inference."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from trivet.common.breaker import PROBE_TEXT, breaker_for
from trivet.errors import EmbedderError, RerankerError
from trivet.models.embed.base import clean
from trivet.models.embed.hosted import key_from
from trivet.models.http import TRIAL_LIMITS, Limits, post_json
from trivet.models.rerank.registry import RerankSpec, checked

COHERE_URL = "https://api.cohere.com/v2"
JINA_URL = "https://api.jina.ai/v1"
# Recall works without the answer, so nothing is retried.
ATTEMPTS = 1
MIN_SECONDS = 0.001
MAX_ANSWER_BYTES = 2**20


class EndpointReranker(ABC):
    local = False

    def __init__(self, spec: RerankSpec, endpoint: str, key: str) -> None:
        self.identity = str(
            RerankSpec(spec.kind, spec.name)
        )  # without the address, because answers show it
        self._model = spec.name
        self._endpoint = endpoint
        self._key = key
        self.breaker = breaker_for("reranker", endpoint, spec.name, self._try)

    @abstractmethod
    def _body(self, query: str, texts: list[str]) -> dict[str, Any]: ...

    @abstractmethod
    def _scores(self, answer: Any) -> dict[int, float]:
        """Return scores by text index; may raise anything on an unknown shape."""

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        left = max(MIN_SECONDS, deadline - time.monotonic())
        limits = Limits(seconds=left, deadline=left, attempts=ATTEMPTS, most_bytes=MAX_ANSWER_BYTES)
        body = self._body(clean(query), [clean(text) for text in texts])
        try:
            answer = self.breaker.call(
                lambda: post_json(self._endpoint, body, self._key, limits, name=self.identity)
            )
        except EmbedderError as error:
            raise RerankerError(str(error)) from None
        return self._in_order(answer, len(texts))

    def _try(self) -> None:
        post_json(self._endpoint, self._body(PROBE_TEXT, [PROBE_TEXT]), self._key, TRIAL_LIMITS)

    def _in_order(self, answer: Any, count: int) -> list[float]:
        try:
            by_place = self._scores(answer)
            scores = [by_place[place] for place in range(count)]
        except (KeyError, TypeError, IndexError, ValueError, AttributeError):
            raise RerankerError(
                f"{self.identity} returned JSON of an unknown shape. Check its address."
            ) from None
        return checked(scores, count, self.identity)


class CohereReranker(EndpointReranker):
    def __init__(
        self, spec: RerankSpec, default_url: str = COHERE_URL, key_variable: str = "COHERE_API_KEY"
    ) -> None:
        super().__init__(spec, f"{spec.url or default_url}/rerank", _required_key(key_variable))

    def _body(self, query: str, texts: list[str]) -> dict[str, Any]:
        return {"model": self._model, "query": query, "documents": texts, "top_n": len(texts)}

    def _scores(self, answer: Any) -> dict[int, float]:
        return {entry["index"]: entry["relevance_score"] for entry in answer["results"]}


class JinaReranker(CohereReranker):
    def __init__(self, spec: RerankSpec) -> None:
        super().__init__(spec, JINA_URL, "JINA_API_KEY")

    def _body(self, query: str, texts: list[str]) -> dict[str, Any]:
        return {**super()._body(query, texts), "return_documents": False}


class TeiReranker(EndpointReranker):
    def __init__(self, spec: RerankSpec) -> None:
        super().__init__(spec, f"{spec.url}/rerank", key_from("TRIVET_RERANK_API_KEY"))

    def _body(self, query: str, texts: list[str]) -> dict[str, Any]:
        return {"query": query, "texts": texts, "raw_scores": True, "truncate": True}

    def _scores(self, answer: Any) -> dict[int, float]:
        return {entry["index"]: entry["score"] for entry in answer}


def _required_key(variable: str) -> str:
    if key := key_from(variable):
        return key
    raise RerankerError(f"this reranker needs an API key: set {variable}")
