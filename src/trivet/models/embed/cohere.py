"""Cohere embeddings (API version 2), which differ for queries and documents."""

from collections.abc import Sequence
from typing import Any

from trivet.models.embed.hosted import HostedEmbedder, Purpose, required_key
from trivet.models.embed.spec import Spec

BASE_URL = "https://api.cohere.com/v2"


class CohereEmbedder(HostedEmbedder):
    def __init__(self, spec: Spec, **limits: Any) -> None:
        super().__init__(spec, f"{spec.url or BASE_URL}/embed", required_key("COHERE_API_KEY"), **limits)

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
