"""Hosted embedders: what all share (batches, limits, the key, a dimension known from the first answer), then each."""

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
# Cohere takes at most 96 texts in a request, the others more.
BATCH_TEXTS = 64
# The strictest documented bound on the tokens of one request is 120,000.
BATCH_TOKENS = 100_000
# Many small models behind these APIs end at 512 tokens and reject or cut what is longer. Shorter passages also match
# a question better, so a large window is something to ask for.
DEFAULT_WINDOW = 500
# Without the tokenizer: English has about 4 bytes a token and Chinese 3, so this errs on the safe side.
BYTES_PER_TOKEN = 3


class HostedEmbedder(ABC):
    """Speaks to one endpoint. A subclass says how a request and an answer look.

    The key is looked up when it is used: without it recall still answers by words, and says what is missing.
    """

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
        # Without the address: it says what the vectors are, in the store and in every answer, not where they come from.
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
        """The vectors in the order of the texts. May raise KeyError, ValueError and the like on a strange answer."""

    @property
    def dimension(self) -> int:
        """As the settings say, else as the first answer says: one short request if there was none yet."""
        if self._dimension is None:
            self.embed_query("dimension")
        assert self._dimension is not None
        return self._dimension

    def check_key(self) -> None:
        """Raises an EmbedderError that names the variable, if the key is missing; asks nobody."""
        self._key()

    def be_patient(self) -> None:
        """Waits for a query's vector as long as for a document's, since nobody waits for the answer."""
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
        """Asks for one vector, to see whether the endpoint answers again."""
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
                f"{self.identity} answered JSON of an unknown shape: is its address right?"
            ) from None


class OpenAIEmbedder(HostedEmbedder):
    """OpenAI, and every server that speaks the same API: Ollama, llama.cpp, vLLM, TEI, ...

    Sends OPENAI_API_KEY to OpenAI only; another server gets TRIVET_EMBED_API_KEY, or no key if that is not set.
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
    """Voyage AI, whose vectors differ for queries and documents."""

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
    """Cohere (API version 2), whose vectors differ for queries and documents."""

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
    """The texts in order, in groups that stay within both bounds; a single text too large goes alone."""
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
    """The vectors of an OpenAI-shaped answer, whose entries need not come in order."""
    entries = sorted(answer["data"], key=lambda entry: int(entry["index"]))
    if [entry["index"] for entry in entries] != list(range(len(entries))):
        raise KeyError("index")
    return [entry["embedding"] for entry in entries]


def key_from(*variables: str) -> str:
    """The first of these environment variables that is set, or an empty string."""
    for variable in variables:
        key = os.environ.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise EmbedderError(
                f"the key in {variable} holds characters that no key has; set it again"
            )
        if key:
            return key
    return ""


def required_key(*variables: str) -> str:
    key = key_from(*variables)
    if not key:
        raise EmbedderError(f"this embedder needs an API key: set {' or '.join(variables)}")
    return key
