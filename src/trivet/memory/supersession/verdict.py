"""Whether a newer statement may update an older one, and the reason told.

A first look goes over named features of the two texts (contrast.py) and, where both have vectors, how near they are.
Where that leaves a chance, a small model reads both; a linear model weighs what it says together with the features.

The model that reads two statements and says whether the newer makes the older one outdated. It comes with Trivet.
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
# Some milliseconds a pair; a machine that needs longer than this for a few is not waited for.
MAX_READ_SECONDS = 5.0
# Of two memories that wait to be compared each may meet the other: some thousand pairs are not read twice.
_recent_scores: BoundedCache[tuple[str, str], float] = BoundedCache(2 * MIB)


@cache
def _pair_model() -> OnnxReranker:
    from trivet.models.rerank.local import bundled

    return bundled(FOLDER)


def open_pair_model() -> None:
    """Before it is asked. Raises RerankerError."""
    _pair_model().open()


def read(new: str, olds: Sequence[str], seconds: float = MAX_READ_SECONDS) -> list[float]:
    """One number a pair; above 0 it is rather an update than none. Raises RerankerError, also after so many seconds."""
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
# Words named on each side of a reason.
NAMED = 3
# Some 70 milliseconds each. The likeliest at first sight are read on the time of a save, the others after it.
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
    """`embedders` holds a model for each embedder whose vectors are known; `words` does without vectors."""

    embedders: Mapping[str, Linear]
    words: Linear

    def of(self, nearness: float | None, embedder: str | None) -> Linear:
        known = self.embedders.get((embedder or "").partition("/")[0])
        return self.words if nearness is None or known is None else known


class ChangeModel(msgspec.Struct, frozen=True):
    """From the probability `told` on, a saved memory is said to update another one.

    What has a chance below `read_from` at first sight is not read; for the rest `read` weighs that sight and what the
    reader says.
    """

    unread: Models
    read: Linear
    read_from: float
    told: float
    manifest: Mapping[str, object]


class Verdict(msgspec.Struct, frozen=True):
    """How likely the newer statement replaces the older one, and why, in a few words."""

    probability: float
    why: str
    unread: bool = False  # by first sight alone, though it is likely enough to be read


class OlderText(msgspec.Struct, frozen=True):
    """What a new statement is compared with: a text and, if there are vectors, how near the two are: see Background."""

    text: str
    nearness: float | None = None


class _FirstLook(msgspec.Struct, frozen=True):
    found: PairFeatures
    logit: float

    @property
    def probability(self) -> float:
        return probability(self.logit)


@cache
def change_model() -> ChangeModel:
    """The model that comes with Trivet; its manifest says how it came to be."""
    try:
        return msgspec.json.decode(
            (files("trivet.memory.supersession") / "changes.json").read_bytes(),
            type=prepared_type(ChangeModel),
        )
    except (OSError, msgspec.MsgspecError) as error:
        raise TrivetError(
            f"changes.json cannot be used ({error}): is the installation whole?"
        ) from None


def judge_updates(
    new: str,
    olds: Sequence[OlderText],
    embedder: str | None = None,
    seconds: float = MAX_READ_SECONDS,
    most: int = MAX_READ,
) -> list[Verdict]:
    """One for each older text. `embedder` is the identity of what made the vectors. Raises RerankerError.

    The model that reads is waited for so many seconds, and reads `most` of them.
    """
    model = change_model()
    looks = [_look(new, old, embedder) for old in olds]
    likely = [place for place, look in enumerate(looks) if look.probability >= model.read_from]
    chosen = sorted(likely, key=lambda place: -looks[place].logit)[:most]
    texts = [olds[place].text for place in chosen]
    said = dict(zip(chosen, read(new, texts, seconds) if texts else (), strict=True))
    return [
        _verdict(look, model.read.probability({SEEN: look.logit, READ: said[place]}))
        if place in said
        else _verdict(look, look.probability, unread=place in likely)
        for place, look in enumerate(looks)
    ]


def judge_by_features(
    new: str, olds: Sequence[OlderText], embedder: str | None = None
) -> list[Verdict]:
    """As `judge_updates`, without the model that reads: for where it cannot."""
    looks = [_look(new, old, embedder) for old in olds]
    return [_verdict(look, look.probability) for look in looks]


def features_of(new: str, old: OlderText) -> tuple[PairFeatures, dict[str, float]]:
    found = contrast(statement(new), statement(old.text))
    return found, {
        **found.features,
        **(nearness_features(old.nearness) if old.nearness is not None else {}),
    }


def _look(new: str, old: OlderText, embedder: str | None) -> _FirstLook:
    found, features = features_of(new, old)
    linear = change_model().unread.of(old.nearness, embedder)
    return _FirstLook(found, linear.logit(features))


def _verdict(look: _FirstLook, chance: float, unread: bool = False) -> Verdict:
    return Verdict(round(chance, DIGITS), _why(look.found), unread)


# Farther apart two texts are hardly on one matter; nearer, more means little: look-alikes are the most alike.
NEARNESS_KNEE = 0.5


def nearness_features(nearness: float) -> dict[str, float]:
    return {"nearness": nearness, "nearness_short": max(0.0, NEARNESS_KNEE - nearness)}


def _why(found: PairFeatures) -> str:
    """Such as: says "no longer"; 1.50 instead of 1.00."""
    said = [f'says "{word}"' for word in sorted(found.said)[:1]]
    if found.new_values and found.old_values:
        said.append(f"{_listed(found.new_values)} instead of {_listed(found.old_values)}")
    elif found.turned_over:
        said.append("says the opposite")
    return "; ".join(said) or "another statement on the same matter"


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(words[:NAMED])
