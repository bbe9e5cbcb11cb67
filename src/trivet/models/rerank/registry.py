"""What a reranker is, and the check that every score passes before anyone may use it.

The name of a reranker as one small value: parses from a string and prints back to it.

off                            no second look
auto                           `best` over the first few, where it is not clear whether they answer
fast, best                     the models that come with Trivet, see PRESETS
folder:/path/to/model          a cross-encoder as an ONNX or sentence-transformers folder
cohere:MODEL[@BASE_URL]        Cohere, or a server that speaks its API
jina:MODEL[@BASE_URL]          Jina, or a server that speaks its API
tei:BASE_URL                   Text Embeddings Inference

From the name of a reranker to the reranker. Importing this is cheap: each kind is imported when it is asked for.
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
    """Scores texts by how well each answers a query. Safe to share between threads; costs nothing until its first use.

    Scores may be of any scale, higher is better; the blend looks only at how they lie to each other.
    """

    @property
    def identity(self) -> str:
        """What answers and measurements name it by."""

    @property
    def local(self) -> bool:
        """True when the model runs inside this process, so that reading a text tells it to nobody."""

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        """One score a text, in the order given. Work that is not done at `deadline` (time.monotonic) is given up."""


def checked(scores: Sequence[float], count: int, source: str) -> list[float]:
    """The scores as plain numbers, or a RerankerError that names `source`."""
    if len(scores) != count:
        raise RerankerError(f"{source} answered {len(scores)} scores for {count} texts")
    try:
        numbers = [float(score) for score in scores]
    except (TypeError, ValueError):
        raise RerankerError(f"{source} answered something else than numbers") from None
    if not all(map(math.isfinite, numbers)):
        raise RerankerError(f"{source} answered a score that is NaN or infinite")
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


def load(spec: RerankSpec) -> Reranker:
    """The reranker of that name, which must not be `off`. Opens no model and calls no one yet."""
    kind = KINDS.get(spec.kind)
    if kind is None or not kind.opens:
        raise InvalidInput(f"unknown reranker {spec.kind!r}; known are: {known(KINDS)}")
    given = {"nothing": (), "path": (spec.name,)}.get(kind.follows, (spec,))
    reranker: Reranker = kind.opener()(*given)
    return reranker


class Rerankers:
    """The rerankers of a process, each loaded when it is first asked for and shared by all who ask.

    `own` is the one that the settings name, if they name one beside the bundled presets.
    """

    def __init__(self, setting: RerankSpec) -> None:
        self.setting = setting
        self._loaded: dict[str, Reranker] = {}
        self._lock = threading.Lock()
        self.asked = 0
        self.failed = 0
        if setting.kind not in (OFF, AUTO):
            self.named(setting.kind)  # a setting that cannot work is told when the store is opened

    def named(self, kind: str) -> Reranker:
        """`auto`, `fast`, `best`, or anything else for the one of the settings."""
        name = self._name(kind)
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = load(RerankSpec(kind) if kind in PRESETS else self.setting)
            return self._loaded[name]

    def resting(self, kind: str) -> str | None:
        """Why the reranker of this name is not asked now; None if it is."""
        breaker = self._breaker(kind)
        return breaker.refusal() if breaker else None

    def late(self, kind: str) -> None:
        """A recall has waited for it as long as it may."""
        breaker = self._breaker(kind)
        if breaker:
            breaker.late()

    def _breaker(self, kind: str) -> CircuitBreaker | None:
        """None for a model that runs inside this process, or was not asked yet."""
        found: CircuitBreaker | None = getattr(self._loaded.get(self._name(kind)), "breaker", None)
        return found

    def _name(self, kind: str) -> str:
        """`auto` and `best` are the same model."""
        return PRESETS[kind].folder if kind in PRESETS else str(self.setting)

    def note(self, answered: bool) -> None:
        with self._lock:
            self.asked += 1
            self.failed += not answered
