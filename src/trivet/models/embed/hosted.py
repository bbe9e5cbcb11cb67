"""Hosted embedders: OpenAI and compatible servers, Voyage and Cohere."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from trivet.common.breaker import PROBE_TEXT, breaker_for
from trivet.errors import EmbedderError
from trivet.models.embed.base import Vectors, checked, clean
from trivet.models.embed.registry import Spec
from trivet.models.http import DOCUMENT_LIMITS, QUERY_LIMITS, TRIAL_LIMITS, Limits, post_json

Purpose = Literal["query", "document"]

OPENAI_URL = "https://api.openai.com/v1"
VOYAGE_URL = "https://api.voyageai.com/v1"
COHERE_URL = "https://api.cohere.com/v2"
ANY_KEY = "TRIVET_EMBED_API_KEY"
# Texts per request; Cohere accepts 96, the others more.
BATCH_TEXTS = 64
# Tokens per request; the strictest documented limit is 120,000.
BATCH_TOKENS = 100_000
# Many small models reject or cut texts over 512 tokens; a larger window must be set.
DEFAULT_WINDOW = 500
# English has about 4 bytes per token and Chinese 3.
BYTES_PER_TOKEN = 3


class HostedEmbedder(ABC):
    """Client of one endpoint; without its API key, recall still works by words."""

    local = False

    def __init__(
        self,
        spec: Spec,
        endpoint: str,
        key: Callable[[], str],
        *,
        query_limits: Limits = QUERY_LIMITS,
        document_limits: Limits = DOCUMENT_LIMITS,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        # Without the address, because the identity is stored and shown.
        self.identity = str(Spec(spec.kind, spec.name, dimensions=spec.dimensions))
        self.window = spec.window or DEFAULT_WINDOW
        self.endpoint = endpoint
        self._spec = spec
        self._key = key
        self._limits: dict[Purpose, Limits] = {"query": query_limits, "document": document_limits}
        self._wait = wait
        self._dimension = spec.dimensions
        self.breaker = breaker_for("embedder", endpoint, spec.name, self._try)

    @abstractmethod
    def _body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]: ...

    @abstractmethod
    def _rows(self, answer: Any) -> list[list[float]]:
        """Return vectors in the order of the texts; may raise anything on an unknown shape."""

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self.embed_query("dimension")
        assert self._dimension is not None
        return self._dimension

    def check_key(self) -> None:
        self._key()

    def be_patient(self) -> None:
        self._limits["query"] = self._limits["document"]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        batches = [
            self._embed(batch, "document") for batch in batched(texts, self.count_tokens(texts))
        ]
        return np.concatenate(batches)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._embed([text], "query")[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return np.concatenate(
            [self._embed(batch, "query") for batch in batched(texts, self.count_tokens(texts))]
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [-(-len(clean(text).encode()) // BYTES_PER_TOKEN) for text in texts]

    def _embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if not all(text.strip() for text in texts):
            raise EmbedderError(f"{self.identity} cannot embed an empty text")
        body = self._body([clean(text) for text in texts], purpose)
        key, limits = self._key(), self._limits[purpose]
        answer = self.breaker.call(
            lambda: post_json(self.endpoint, body, key, limits, self._wait, self.identity)
        )
        vectors = checked(self._parsed(answer), len(texts), self._dimension, self.identity)
        self._dimension = vectors.shape[1]
        return vectors

    def _try(self) -> None:
        post_json(
            self.endpoint,
            self._body([PROBE_TEXT], "query"),
            self._key(),
            TRIAL_LIMITS,
            name=self.identity,
        )

    def _parsed(self, answer: Any) -> list[list[float]]:
        try:
            return self._rows(answer)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError):
            raise EmbedderError(
                f"{self.identity} returned JSON of an unknown shape. Check its address."
            ) from None


class OpenAIEmbedder(HostedEmbedder):
    """OpenAI and compatible servers: Ollama, llama.cpp, vLLM, TEI.

    Sends OPENAI_API_KEY to OpenAI only; others get TRIVET_EMBED_API_KEY, if set.
    """

    def __init__(self, spec: Spec, **limits: Any) -> None:
        key = (
            partial(key_from, ANY_KEY)
            if spec.url
            else partial(required_key, ANY_KEY, "OPENAI_API_KEY")
        )
        super().__init__(spec, f"{spec.url or OPENAI_URL}/embeddings", key, **limits)

    def _body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._spec.name,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._spec.dimensions:
            body["dimensions"] = self._spec.dimensions
        return body

    def _rows(self, answer: Any) -> list[list[float]]:
        return rows_by_index(answer)


class VoyageEmbedder(HostedEmbedder):
    def __init__(self, spec: Spec, **limits: Any) -> None:
        super().__init__(
            spec,
            f"{spec.url or VOYAGE_URL}/embeddings",
            partial(required_key, "VOYAGE_API_KEY"),
            **limits,
        )

    def _body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._spec.name,
            "input": list(texts),
            "input_type": purpose,
        }
        if self._spec.dimensions:
            body["output_dimension"] = self._spec.dimensions
        return body

    def _rows(self, answer: Any) -> list[list[float]]:
        return rows_by_index(answer)


class CohereEmbedder(HostedEmbedder):
    def __init__(self, spec: Spec, **limits: Any) -> None:
        super().__init__(
            spec,
            f"{spec.url or COHERE_URL}/embed",
            partial(required_key, "COHERE_API_KEY"),
            **limits,
        )

    def _body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._spec.name,
            "texts": list(texts),
            "input_type": f"search_{purpose}",
            "embedding_types": ["float"],
        }
        if self._spec.dimensions:
            body["output_dimension"] = self._spec.dimensions
        return body

    def _rows(self, answer: Any) -> list[list[float]]:
        rows: list[list[float]] = answer["embeddings"]["float"]
        return rows


def batched(texts: Sequence[str], tokens: Sequence[int]) -> Iterator[list[str]]:
    """Yield the texts in groups within both limits; an oversized text goes alone."""
    batch: list[str] = []
    total = 0
    for text, size in zip(texts, tokens, strict=True):
        if batch and (len(batch) == BATCH_TEXTS or total + size > BATCH_TOKENS):
            yield batch
            batch, total = [], 0
        batch.append(text)
        total += size
    if batch:
        yield batch


def rows_by_index(answer: Any) -> list[list[float]]:
    entries = sorted(answer["data"], key=lambda entry: int(entry["index"]))
    if [entry["index"] for entry in entries] != list(range(len(entries))):
        raise KeyError("index")
    return [entry["embedding"] for entry in entries]


def key_from(*variables: str) -> str:
    for variable in variables:
        key = os.environ.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise EmbedderError(
                f"the key in {variable} contains characters that no key has. Set it again."
            )
        if key:
            return key
    return ""


def required_key(*variables: str) -> str:
    key = key_from(*variables)
    if not key:
        raise EmbedderError(f"this embedder needs an API key: set {' or '.join(variables)}")
    return key
