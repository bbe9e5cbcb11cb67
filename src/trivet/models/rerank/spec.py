"""The name of a reranker as one small value: parses from a string and prints back to it.

off                            no second look
auto                           `best` over the first few, where it is not clear whether they answer
fast, best                     the models that come with Trivet, see PRESETS
folder:/path/to/model          a cross-encoder as an ONNX or sentence-transformers folder
cohere:MODEL[@BASE_URL]        Cohere, or a server that speaks its API
jina:MODEL[@BASE_URL]          Jina, or a server that speaks its API
tei:BASE_URL                   Text Embeddings Inference
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trivet.errors import InvalidInput
from trivet.models.kinds import HOSTED_FORM, Kind, checked_url, known

OFF = "off"
AUTO = "auto"
KINDS: Mapping[str, Kind] = {
    OFF: Kind(OFF),
    AUTO: Kind(AUTO, "trivet.models.rerank.onnx:best"),
    "fast": Kind("fast", "trivet.models.rerank.onnx:fast"),
    "best": Kind("best", "trivet.models.rerank.onnx:best"),
    "folder": Kind("folder:/path", "trivet.models.rerank.folder:open_folder", "path"),
    "cohere": Kind("cohere:MODEL[@URL]", "trivet.models.rerank.endpoint:CohereReranker", "model"),
    "jina": Kind("jina:MODEL[@URL]", "trivet.models.rerank.endpoint:JinaReranker", "model"),
    "tei": Kind("tei:URL", "trivet.models.rerank.endpoint:TeiReranker", "url"),
}
# For a reranker that the settings name: even weights of the text legs' and its own deviations.
BLEND = 0.5
TOP = 20
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Preset:
    """A folder of `models/`, how many of the best candidates it reads and how much its word counts.

    `when_unsure`: it is asked only where the first look leaves open whether anything answers.
    """

    folder: str
    top: int
    blend: float
    when_unsure: bool = False


# Blends that did best on average over seven corpora (docs/results/blends.json): an even one of three narrow layers lost
# .05 on code. Twelve layers read the best 20: ten more would be worth .01 on dialogues, for half as much time again.
# Three narrow ones read as many in a fifth of it.
PRESETS: dict[str, Preset] = {
    AUTO: Preset("reranker", top=5, blend=BLEND, when_unsure=True),
    "fast": Preset("reranker-fast", top=20, blend=0.25),
    "best": Preset("reranker", top=20, blend=BLEND),
}


@dataclass(frozen=True, slots=True)
class RerankSpec:
    """`name` is the model of an endpoint or the path of a folder."""

    kind: str
    name: str = ""
    url: str = ""

    def __str__(self) -> str:
        if not self.name:
            return f"{self.kind}:{self.url}" if self.url else self.kind
        return f"{self.kind}:{self.name}{self.url and f'@{self.url}'}"

    @classmethod
    def parse(cls, text: str) -> RerankSpec:
        kind, _, rest = text.strip().partition(":")
        follows = KINDS[kind].follows if kind in KINDS else None
        if follows == "nothing" and not rest:
            return cls(kind)
        if follows == "path" and rest:
            return cls(kind, rest)
        if follows == "url" and rest.startswith(("http://", "https://")):
            return cls(kind, url=checked_url(rest, "reranker"))
        if follows == "model" and (parts := HOSTED_FORM.fullmatch(rest)) and not parts["options"]:
            return cls(kind, parts["model"], checked_url(parts["url"] or "", "reranker"))
        raise InvalidInput(f"unknown reranker {kind!r}; known are: {known(KINDS)}")
