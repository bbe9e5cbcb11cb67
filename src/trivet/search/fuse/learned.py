"""Fusion by a model learned across corpora: the best of the usual fusion, ordered anew by what legs and words say.

The model is linear in features less their mean over the query's candidates, some of them once more times a trait of the
query, so each part of a score can be told. Features of words come from whoever can read the memories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec

from trivet.errors import TrivetError
from trivet.search.fuse.convex import CONVEX
from trivet.search.fuse.features import HEAD, LegFeatures
from trivet.search.fuse.grammar import Options
from trivet.search.fuse.method import Combination, Evidence, Method, Weighted
from trivet.search.fuse.scale import rescaled
from trivet.search.fuse.weights import weigh
from trivet.types import Contribution, Fused, Ranking

# What the model starts from: the default fusion, written out because its features were taken from it.
BASE = Options({"norm": "spread", "norm.graph": "raw"})
BASE_WEIGHTS = {"lexical": 1.0, "dense": 8.0, "graph": 8.0}
# Traits of a query less what is usual, so that the plain feature has the weight of a usual query.
USUAL = {"known": 0.9, "legs_agree": 0.4}
LEGS = ("lexical", "dense", "graph")


class LearnedModel(msgspec.Struct, frozen=True):
    """The weight of each feature; `feature*trait` is one that counts by a trait of the query."""

    weights: Mapping[str, float]
    manifest: Mapping[str, object]


@cache
def learned_model() -> LearnedModel:
    """The model that comes with Trivet."""
    try:
        return msgspec.json.decode((files("trivet.search.fuse") / "learned.json").read_bytes(), type=LearnedModel)
    except (OSError, msgspec.MsgspecError) as error:
        raise TrivetError(f"learned.json cannot be used ({error}): is the installation whole?") from None


def _combine(options: Options, legs: Sequence[Weighted]) -> Combination:
    return CONVEX.combine(BASE, weigh(BASE_WEIGHTS, [ranking for ranking, _ in legs]))


def refined(fused: tuple[Fused, ...], rankings: Sequence[Ranking], evidence: Evidence | None) -> tuple[Fused, ...]:
    """One leg alone is its own best judge, so its order stands."""
    if sum(bool(ranking.candidates) for ranking in rankings) < 2:
        return fused
    head, rest = fused[:HEAD], fused[HEAD:]
    words = evidence([hit.id for hit in head]) if evidence is not None else {}
    legs = LegFeatures(head, rankings)
    values = [{**legs.of(at), **words.get(hit.id, {})} for at, hit in enumerate(head)]
    parts = _parts(values, learned_model().weights)
    sums = [math.fsum(part.values()) for part in parts]
    scores = rescaled(sums, head, rest)
    marked = [
        Fused(id=hit.id, score=scores[at], contributions=_told(hit, parts[at], words.get(hit.id, {})))
        for at, hit in enumerate(head)
    ]
    order = sorted(range(len(head)), key=sums.__getitem__, reverse=True)  # stable: ties stay as they were
    return (*[marked[at] for at in order], *rest)


def _parts(values: Sequence[Mapping[str, float]], weights: Mapping[str, float]) -> list[dict[str, float]]:
    """What each feature adds to each candidate's score, beside what it adds to all of them."""
    columns = {name: [weight * _value(name, row) for row in values] for name, weight in weights.items()}
    means = {name: math.fsum(column) / len(column) for name, column in columns.items()}
    return [{name: column[at] - means[name] for name, column in columns.items()} for at in range(len(values))]


def _value(name: str, row: Mapping[str, float]) -> float:
    """A feature or trait that nobody could look at adds nothing."""
    feature, _, trait = name.partition("*")
    value = row.get(feature, 0.0)
    return value * (row[trait] - USUAL[trait] if trait in row else 0.0) if trait else value


def _told(hit: Fused, parts: Mapping[str, float], words: Mapping[str, float]) -> tuple[Contribution, ...]:
    """What each leg, the usual fusion and the words added, in place of the normalised scores."""
    added = {leg: math.fsum(part for name, part in parts.items() if name.startswith(leg)) for leg in LEGS}
    told = [
        msgspec.structs.replace(part, normalised=added.get(part.leg, 0.0), weight=1.0) for part in hit.contributions
    ]
    fixed = Contribution(leg="fused", rank=None, score=hit.score, normalised=parts.get("fixed", 0.0), weight=1.0)
    rest = math.fsum(part for name, part in parts.items() if name != "fixed" and not name.startswith(LEGS))
    spoken = Contribution(leg="words", rank=None, score=words.get("coverage", 0.0), normalised=rest, weight=1.0)
    return (*told, fixed, spoken)


LEARNED = Method("learned", _combine, refine=refined)
