"""Judging whether a newer statement may update an older one, and why.

A linear model judges features and vectors, and a small bundled model reads likely pairs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from trivet.common.bounded_cache import MIB, BoundedCache
from trivet.common.threads import prepared_type
from trivet.errors import TrivetError
from trivet.memory.supersession.statement import PairFeatures, contrast, statement
from trivet.search.relevance import probability

if TYPE_CHECKING:
    from trivet.models.rerank.local import OnnxReranker


FOLDER = "changes"
# Do not wait for a machine that needs longer than this.
MAX_READ_SECONDS = 5.0
# Holds a few thousand pairs, which would be read twice if both memories wait for comparison.
_recent_scores: BoundedCache[tuple[str, str], float] = BoundedCache(2 * MIB)


@cache
def _pair_model() -> OnnxReranker:
    from trivet.models.rerank.local import bundled

    return bundled(FOLDER)


def open_pair_model() -> None:
    """Load the bundled model, or raise RerankerError."""
    _pair_model().open()


def read(new: str, olds: Sequence[str], seconds: float = MAX_READ_SECONDS) -> list[float]:
    """Return a score per pair, above 0 for an update.

    Raises:
        RerankerError: The model failed or exceeded `seconds`.
    """
    known = {old: score for old in olds if (score := _recent_scores.get((new, old))) is not None}
    unread = [old for old in dict.fromkeys(olds) if old not in known]
    if unread:
        known |= zip(
            unread, _pair_model().score(new, unread, time.monotonic() + seconds), strict=True
        )
        for old in unread:
            _recent_scores.put((new, old), known[old])
    return [known[old] for old in olds]


DIGITS = 3
NAMED = 3
# Pairs read per memory, at about 70 ms each: the likeliest during a save, the others afterward.
MAX_PAIRS_READ_ON_SAVE, MAX_READ = 2, 6
SEEN, READ = "seen", "read"


class Linear(msgspec.Struct, frozen=True):
    bias: float
    weights: Mapping[str, float]

    def logit(self, features: Mapping[str, float]) -> float:
        return self.bias + sum(weight * features[name] for name, weight in self.weights.items())

    def probability(self, features: Mapping[str, float]) -> float:
        return probability(self.logit(features))


class Models(msgspec.Struct, frozen=True):
    """Models by embedder, and `words` for pairs without vectors."""

    embedders: Mapping[str, Linear]
    words: Linear

    def of(self, nearness: float | None, embedder: str | None) -> Linear:
        known = self.embedders.get((embedder or "").partition("/")[0])
        return self.words if nearness is None or known is None else known


class ChangeModel(msgspec.Struct, frozen=True):
    """The bundled weights and thresholds.

    Pairs from `read_from` on are read; from `report_from` on, the caller learns of an update.
    """

    unread: Models
    read: Linear
    read_from: float
    report_from: float
    manifest: Mapping[str, object]


class Verdict(msgspec.Struct, frozen=True):
    probability: float
    why: str
    unread: bool = False  # judged by features only, though likely enough to be read


class OlderText(msgspec.Struct, frozen=True):
    """An older text and its nearness above the baseline."""

    text: str
    nearness: float | None = None


class _FeatureJudgment(msgspec.Struct, frozen=True):
    found: PairFeatures
    logit: float

    @property
    def probability(self) -> float:
        return probability(self.logit)


@cache
def change_model() -> ChangeModel:
    """Return the bundled model, whose manifest documents its training."""
    try:
        return msgspec.json.decode(
            (files("trivet.memory.supersession") / "changes.json").read_bytes(),
            type=prepared_type(ChangeModel),
        )
    except (OSError, msgspec.MsgspecError) as error:
        raise TrivetError(f"changes.json cannot be read ({error}). Reinstall Trivet.") from None


def judge_updates(
    new: str,
    olds: Sequence[OlderText],
    embedder: str | None = None,
    seconds: float = MAX_READ_SECONDS,
    most: int = MAX_READ,
) -> list[Verdict]:
    """Return a verdict per older text; `embedder` made the vectors.

    Raises:
        RerankerError: The reading model failed or exceeded `seconds`.
    """
    model = change_model()
    looks = [_judge_features(new, old, embedder) for old in olds]
    likely = [place for place, look in enumerate(looks) if look.probability >= model.read_from]
    chosen = sorted(likely, key=lambda place: -looks[place].logit)[:most]
    texts = [olds[place].text for place in chosen]
    scores = dict(zip(chosen, read(new, texts, seconds) if texts else (), strict=True))
    return [
        _verdict(look, model.read.probability({SEEN: look.logit, READ: scores[place]}))
        if place in scores
        else _verdict(look, look.probability, unread=place in likely)
        for place, look in enumerate(looks)
    ]


def judge_by_features(
    new: str, olds: Sequence[OlderText], embedder: str | None = None
) -> list[Verdict]:
    looks = [_judge_features(new, old, embedder) for old in olds]
    return [_verdict(look, look.probability) for look in looks]


def features_of(new: str, old: OlderText) -> tuple[PairFeatures, dict[str, float]]:
    found = contrast(statement(new), statement(old.text))
    return found, {
        **found.features,
        **(nearness_features(old.nearness) if old.nearness is not None else {}),
    }


def _judge_features(new: str, old: OlderText, embedder: str | None) -> _FeatureJudgment:
    found, features = features_of(new, old)
    linear = change_model().unread.of(old.nearness, embedder)
    return _FeatureJudgment(found, linear.logit(features))


def _verdict(look: _FeatureJudgment, chance: float, unread: bool = False) -> Verdict:
    return Verdict(round(chance, DIGITS), _why(look.found), unread)


# Below this, two texts are rarely about one matter; above it, more nearness says little.
NEARNESS_KNEE = 0.5


def nearness_features(nearness: float) -> dict[str, float]:
    return {"nearness": nearness, "nearness_short": max(0.0, NEARNESS_KNEE - nearness)}


def _why(found: PairFeatures) -> str:
    """Format such as: says "no longer"; 1.50 instead of 1.00."""
    reasons = [f'says "{word}"' for word in sorted(found.said)[:1]]
    if found.new_values and found.old_values:
        reasons.append(f"{_listed(found.new_values)} instead of {_listed(found.old_values)}")
    elif found.turned_over:
        reasons.append("says the opposite")
    return "; ".join(reasons) or "another statement on the same matter"


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(words[:NAMED])
