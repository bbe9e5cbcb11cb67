"""Whether a newer statement may update an older one: a small linear model over named features, and the reason told."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

from trivet.errors import TrivetError
from trivet.memory.changes.contrast import Contrast, contrast
from trivet.memory.changes.statement import statement
from trivet.search.relevance.model import probability

DIGITS = 3
# Words named on each side of a reason.
NAMED = 3


class Linear(msgspec.Struct, frozen=True):
    bias: float
    weights: Mapping[str, float]

    def probability(self, features: Mapping[str, float]) -> float:
        return probability(self.bias + sum(weight * features[name] for name, weight in self.weights.items()))


class ChangeModel(msgspec.Struct, frozen=True):
    """`embedders` holds a model for each embedder whose cosines are known; `words` does without cosines.

    From the probability `told` on, a saved memory is said to update another one.
    """

    embedders: Mapping[str, Linear]
    words: Linear
    told: float
    manifest: Mapping[str, object]


class Verdict(msgspec.Struct, frozen=True):
    """How likely the newer statement replaces the older one, and why, in a few words."""

    probability: float
    why: str


@cache
def change_model() -> ChangeModel:
    """The model that comes with Trivet; its manifest says how it came to be."""
    try:
        return msgspec.json.decode((files("trivet.memory.changes") / "changes.json").read_bytes(), type=ChangeModel)
    except (OSError, msgspec.MsgspecError) as error:
        raise TrivetError(f"changes.json cannot be used ({error}): is the installation whole?") from None


def may_update(new: str, old: str, cosine: float | None = None, embedder: str | None = None) -> Verdict:
    """`cosine` is that of the two texts' vectors, if there are any, and `embedder` the identity of what made them."""
    model = change_model()
    linear = model.embedders.get((embedder or "").partition("/")[0]) if cosine is not None else None
    found = contrast(statement(new), statement(old))
    if linear is None:
        return Verdict(round(model.words.probability(found.features), DIGITS), _why(found))
    features = {**found.features, **of_cosine(cosine or 0.0)}
    return Verdict(round(linear.probability(features), DIGITS), _why(found))


# Below this cosine two texts are hardly on one matter; above it more means little: look-alikes are the most alike.
ONE_MATTER = 0.5


def of_cosine(cosine: float) -> dict[str, float]:
    return {"cosine": cosine, "cosine_short": max(0.0, ONE_MATTER - cosine)}


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
