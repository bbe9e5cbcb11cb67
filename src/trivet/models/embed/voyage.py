"""Voyage AI embeddings, which differ for queries and documents."""

from collections.abc import Sequence
from typing import Any

from trivet.models.embed.hosted import HostedEmbedder, Purpose, required_key, rows_by_index
from trivet.models.embed.spec import Spec

BASE_URL = "https://api.voyageai.com/v1"


class VoyageEmbedder(HostedEmbedder):
    def __init__(self, spec: Spec, **limits: Any) -> None:
        super().__init__(spec, f"{spec.url or BASE_URL}/embeddings", required_key("VOYAGE_API_KEY"), **limits)

    def _body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._spec.name, "input": list(texts), "input_type": purpose}
        if self._spec.dimensions:
            body["output_dimension"] = self._spec.dimensions
        return body

    def _rows(self, answer: Any) -> list[list[float]]:
        return rows_by_index(answer)
