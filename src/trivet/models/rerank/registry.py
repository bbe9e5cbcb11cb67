"""The reranker interface, names of rerankers as values, and the kinds that open them.

off                            no reranking
auto                           `best` over the first few, if their relevance is unclear
fast, best                     the bundled models, see PRESETS
folder:/path/to/model          a cross-encoder as an ONNX or sentence-transformers folder
cohere:MODEL[@BASE_URL]        Cohere, or a server that speaks its API
jina:MODEL[@BASE_URL]          Jina, or a server that speaks its API
tei:BASE_URL                   Text Embeddings Inference
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from trivet.errors import InvalidInput, RerankerError
from trivet.models.embed.registry import HOSTED_FORM, Kind, checked_url, known

if TYPE_CHECKING:
    from trivet.common.breaker import CircuitBreaker


class Reranker(Protocol):
    """A model that scores texts on any scale, higher is better; thread-safe."""

    @property
    def identity(self) -> str:
        """The name shown in answers and measurements."""

    @property
    def local(self) -> bool:
        """Whether the model runs in this process, so that no text leaves it."""

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        """Return one score per text, or raise RerankerError at `deadline` (time.monotonic)."""


def checked(scores: Sequence[float], count: int, source: str) -> list[float]:
    """Return the scores as floats, or raise a RerankerError that names `source`."""
    if len(scores) != count:
        raise RerankerError(f"{source} returned {len(scores)} scores for {count} texts")
    try:
        numbers = [float(score) for score in scores]
    except (TypeError, ValueError):
        raise RerankerError(f"{source} returned values that are not numbers") from None
    if not all(map(math.isfinite, numbers)):
        raise RerankerError(f"{source} returned a score that is NaN or infinite")
    return numbers


OFF = "off"
AUTO = "auto"
KINDS: Mapping[str, Kind] = {
    OFF: Kind(OFF),
    AUTO: Kind(AUTO, "trivet.models.rerank.local:best"),
    "fast": Kind("fast", "trivet.models.rerank.local:fast"),
    "best": Kind("best", "trivet.models.rerank.local:best"),
    "folder": Kind("folder:/path", "trivet.models.rerank.local:open_folder", "path"),
    "cohere": Kind("cohere:MODEL[@URL]", "trivet.models.rerank.hosted:CohereReranker", "model"),
    "jina": Kind("jina:MODEL[@URL]", "trivet.models.rerank.hosted:JinaReranker", "model"),
    "tei": Kind("tei:URL", "trivet.models.rerank.hosted:TeiReranker", "url"),
}
# Share of the blend for a reranker of the settings.
BLEND = 0.5
TOP = 20
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Preset:
    """A bundled model's folder, candidates read, and share of the blend.

    `when_unsure`: it runs only if the first pass leaves the answer open.
    """

    folder: str
    top: int
    blend: float
    when_unsure: bool = False


# Best blends on average over seven corpora (docs/results/blends.json); an even blend of the
# three-layer model lost .05 on code. Ten more candidates would gain the twelve-layer model .01 on
# dialogues for 1.5 times the time. The three-layer model takes a fifth of its time.
PRESETS: dict[str, Preset] = {
    AUTO: Preset("reranker", top=5, blend=BLEND, when_unsure=True),
    "fast": Preset("reranker-fast", top=20, blend=0.25),
    "best": Preset("reranker", top=20, blend=BLEND),
}


@dataclass(frozen=True, slots=True)
class RerankSpec:
    """A parsed name; `name` is a model or a folder."""

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


def load(spec: RerankSpec) -> Reranker:
    """Return the named reranker, other than `off`; calls no server."""
    kind = KINDS.get(spec.kind)
    if kind is None or not kind.opens:
        raise InvalidInput(f"unknown reranker {spec.kind!r}; known are: {known(KINDS)}")
    given = {"nothing": (), "path": (spec.name,)}.get(kind.follows, (spec,))
    reranker: Reranker = kind.opener()(*given)
    return reranker


class Rerankers:
    def __init__(self, setting: RerankSpec) -> None:
        self.setting = setting
        self._loaded: dict[str, Reranker] = {}
        self._lock = threading.Lock()
        self.asked = 0
        self.failed = 0
        if setting.kind not in (OFF, AUTO):
            self.named(setting.kind)  # reports an unusable setting when the store is opened

    def named(self, kind: str) -> Reranker:
        """Return a preset's reranker, or the one of the settings."""
        name = self._name(kind)
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = load(RerankSpec(kind) if kind in PRESETS else self.setting)
            return self._loaded[name]

    def resting(self, kind: str) -> str | None:
        breaker = self._breaker(kind)
        return breaker.refusal() if breaker else None

    def late(self, kind: str) -> None:
        breaker = self._breaker(kind)
        if breaker:
            breaker.late()

    def _breaker(self, kind: str) -> CircuitBreaker | None:
        found: CircuitBreaker | None = getattr(self._loaded.get(self._name(kind)), "breaker", None)
        return found

    def _name(self, kind: str) -> str:
        return PRESETS[kind].folder if kind in PRESETS else str(self.setting)

    def note(self, answered: bool) -> None:
        with self._lock:
            self.asked += 1
            self.failed += not answered
