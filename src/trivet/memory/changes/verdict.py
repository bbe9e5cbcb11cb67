"""Whether a newer statement may update an older one, and the reason told.

A first look goes over named features of the two texts (contrast.py) and, where both have vectors, how near they are.
Where that leaves a chance, a small model reads both; a linear model weighs what it says together with the features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec

from trivet.decoding import known_type
from trivet.errors import TrivetError
from trivet.memory.changes.contrast import Contrast, contrast
from trivet.memory.changes.reader import LONGEST_SECONDS, read
from trivet.memory.changes.statement import statement
from trivet.search.relevance.model import probability

DIGITS = 3
# Words named on each side of a reason.
NAMED = 3
# Some 70 milliseconds each. The likeliest at first sight are read on the time of a save, the others after it.
READ_ON_SAVE, READ_AT_MOST = 2, 6
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


class Older(msgspec.Struct, frozen=True):
    """What a new statement is compared with: a text and, if there are vectors, how near the two are: see Background."""

    text: str
    nearness: float | None = None


class _Look(msgspec.Struct, frozen=True):
    found: Contrast
    logit: float

    @property
    def probability(self) -> float:
        return probability(self.logit)


@cache
def change_model() -> ChangeModel:
    """The model that comes with Trivet; its manifest says how it came to be."""
    try:
        return msgspec.json.decode(
            (files("trivet.memory.changes") / "changes.json").read_bytes(), type=known_type(ChangeModel)
        )
    except (OSError, msgspec.MsgspecError) as error:
        raise TrivetError(f"changes.json cannot be used ({error}): is the installation whole?") from None


def verdicts(
    new: str,
    olds: Sequence[Older],
    embedder: str | None = None,
    seconds: float = LONGEST_SECONDS,
    most: int = READ_AT_MOST,
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


def at_first_sight(new: str, olds: Sequence[Older], embedder: str | None = None) -> list[Verdict]:
    """As `verdicts`, without the model that reads: for where it cannot."""
    looks = [_look(new, old, embedder) for old in olds]
    return [_verdict(look, look.probability) for look in looks]


def features_of(new: str, old: Older) -> tuple[Contrast, dict[str, float]]:
    found = contrast(statement(new), statement(old.text))
    return found, {**found.features, **(of_vectors(old.nearness) if old.nearness is not None else {})}


def _look(new: str, old: Older, embedder: str | None) -> _Look:
    found, features = features_of(new, old)
    linear = change_model().unread.of(old.nearness, embedder)
    return _Look(found, linear.logit(features))


def _verdict(look: _Look, chance: float, unread: bool = False) -> Verdict:
    return Verdict(round(chance, DIGITS), _why(look.found), unread)


# Farther apart two texts are hardly on one matter; nearer, more means little: look-alikes are the most alike.
ONE_MATTER = 0.5


def of_vectors(nearness: float) -> dict[str, float]:
    return {"nearness": nearness, "nearness_short": max(0.0, ONE_MATTER - nearness)}


def _why(found: Contrast) -> str:
    """Such as: says "no longer"; 1.50 instead of 1.00."""
    said = [f'says "{word}"' for word in sorted(found.said)[:1]]
    if found.new_values and found.old_values:
        said.append(f"{_listed(found.new_values)} instead of {_listed(found.old_values)}")
    elif found.turned_over:
        said.append("says the opposite")
    return "; ".join(said) or "another statement on the same matter"


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(words[:NAMED])
