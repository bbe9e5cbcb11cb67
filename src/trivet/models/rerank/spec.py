"""The name of a reranker as one small value: parses from a string and prints back to it.

off                            no second look
fast, best                     the model that comes with Trivet, see presets.py
folder:/path/to/model          a cross-encoder as an ONNX or sentence-transformers folder
cohere:MODEL[@BASE_URL]        Cohere, or a server that speaks its API
jina:MODEL[@BASE_URL]          Jina, or a server that speaks its API
tei:BASE_URL                   Text Embeddings Inference
"""

from __future__ import annotations

from dataclasses import dataclass

from trivet.errors import InvalidInput
from trivet.models.embed.spec import HOSTED_FORM, checked_url
from trivet.models.rerank.presets import PRESETS

OFF = "off"
KNOWN = "off, fast, best, folder:/path, cohere:MODEL[@URL], jina:MODEL[@URL], tei:URL"


@dataclass(frozen=True, slots=True)
class RerankSpec:
    """`name` is the model of an endpoint or the path of a folder."""

    kind: str
    name: str = ""
    url: str = ""

    def __str__(self) -> str:
        if self.kind in (OFF, *PRESETS):
            return self.kind
        if self.kind == "tei":
            return f"tei:{self.url}"
        return f"{self.kind}:{self.name}{self.url and f'@{self.url}'}"

    @classmethod
    def parse(cls, text: str) -> RerankSpec:
        kind, _, rest = text.strip().partition(":")
        if kind in (OFF, *PRESETS) and not rest:
            return cls(kind)
        if kind == "folder" and rest:
            return cls(kind, rest)
        if kind == "tei" and rest.startswith(("http://", "https://")):
            return cls(kind, url=checked_url(rest, "reranker"))
        if kind in ("cohere", "jina") and (parts := HOSTED_FORM.fullmatch(rest)) and not parts["options"]:
            return cls(kind, parts["model"], checked_url(parts["url"] or "", "reranker"))
        raise InvalidInput(f"unknown reranker {kind!r}; known are: {KNOWN}")
