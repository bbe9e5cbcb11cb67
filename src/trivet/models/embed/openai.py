"""OpenAI embeddings, and every server that speaks the same API: Ollama, llama.cpp, vLLM, TEI, ..."""

from collections.abc import Sequence
from typing import Any

from trivet.models.embed.hosted import HostedEmbedder, Purpose, key_from, rows_by_index
from trivet.models.embed.spec import Spec

BASE_URL = "https://api.openai.com/v1"
ANY_KEY = "TRIVET_EMBED_API_KEY"


class OpenAIEmbedder(HostedEmbedder):
    """Sends OPENAI_API_KEY to OpenAI only; another server gets TRIVET_EMBED_API_KEY, or no key if that is not set."""

    def __init__(self, spec: Spec, **limits: Any) -> None:
        variables = (ANY_KEY,) if spec.url else (ANY_KEY, "OPENAI_API_KEY")
        super().__init__(spec, f"{spec.url or BASE_URL}/embeddings", key_from(*variables), **limits)

    def _body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._spec.name, "input": list(texts), "encoding_format": "float"}
        if self._spec.dimensions:
            body["dimensions"] = self._spec.dimensions
        return body

    def _rows(self, answer: Any) -> list[list[float]]:
        return rows_by_index(answer)
