"""The rerank step of a recipe, and blending the reranker's scores with the fused ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from trivet.models.rerank.registry import BLEND, OFF, PRESETS, TOP, RerankSpec
from trivet.search.fuse.methods import zscore
from trivet.search.legs.registry import legs
from trivet.types import Candidate, Contribution, Fused, Ranking

# A reranker of the settings that is no preset.
CUSTOM = "own"
CONFIGURED = ""
MODELS: tuple[str, ...] = (OFF, *PRESETS, CUSTOM)


class Rerank(msgspec.Struct, frozen=True):
    """The rerank step; an empty `model` means the one of the settings, else `best`."""

    model: str = CONFIGURED
    top: int | None = None
    blend: float | None = None


def resolved(step: Rerank | None, option: str | None, setting: RerankSpec) -> Rerank | None:
    """Return the step to run, or None: option over recipe, recipe over setting."""
    model = option or (step.model if step else "")
    if not model:
        model = "best" if step and setting.kind == OFF else setting.kind
    if model == OFF or (model == CUSTOM and setting.kind == OFF):
        return None
    step = step or Rerank()
    preset = PRESETS.get(model)
    blend = (preset.blend if preset else BLEND) if step.blend is None else step.blend
    return Rerank(model if preset else CUSTOM, step.top or (preset.top if preset else TOP), blend)


# Second stages in traces. They have no part in a fused sum.
EXPAND = "expand"
RERANK = "rerank"


def blended(fused: Sequence[Fused], top: int, ranking: Ranking, share: float) -> tuple[Fused, ...]:
    """Return the hits with the first `top` ordered by a weighted sum of both scores' z-scores.

    The reranker replaces a share of the legs that read text. The graph leg keeps its full part: a
    reranker cannot see that a memory leads to the answer (MuSiQue .706 nDCG@10, .678 if the graph
    shares).
    """
    head, rest = fused[:top], tuple(fused[top:])
    before, after, kept = _deviations(_as_ranking(head)), _deviations(ranking), _kept_parts(head)
    raw = {candidate.id: candidate.score for candidate in ranking.candidates}
    places = {candidate.id: place for place, candidate in enumerate(ranking.candidates, 1)}
    mixed = [
        (1 - share) * before[hit.id] + share * (after[hit.id] + part)
        if hit.id in after
        else before[hit.id]
        for hit, part in zip(head, kept, strict=True)
    ]
    scores = _rescaled(mixed, head, rest)
    marked = [
        msgspec.structs.replace(
            hit, blended=score, rerank=_contribution(hit.id, places, raw, after, share)
        )
        for hit, score in zip(head, scores, strict=True)
    ]
    order = sorted(
        range(len(head)), key=mixed.__getitem__, reverse=True
    )  # stable sort: ties keep their order
    return (*[marked[at] for at in order], *rest)


def _kept_parts(head: Sequence[Fused]) -> list[float]:
    parts = [
        {part.leg: part.weight * part.normalised for part in hit.contributions} for hit in head
    ]
    totals = [math.fsum(value for leg, value in found.items() if leg != EXPAND) for found in parts]
    mean = math.fsum(totals) / len(totals)
    sigma = math.sqrt(math.fsum((total - mean) ** 2 for total in totals) / len(totals))
    blind = [leg.name for leg in legs() if not leg.reads_text]
    return [sum(found.get(leg, 0.0) for leg in blind) / sigma if sigma else 0.0 for found in parts]


def _contribution(
    id: str,
    places: dict[str, int],
    raw: dict[str, float],
    deviations: dict[str, float],
    share: float,
) -> Contribution | None:
    if id not in raw:
        return None
    return Contribution(
        leg=RERANK, rank=places[id], score=raw[id], normalised=deviations[id], weight=share
    )


def _as_ranking(head: Sequence[Fused]) -> Ranking:
    return Ranking(
        leg="fused",
        floor=0.0,
        candidates=tuple(Candidate(id=hit.id, score=hit.score) for hit in head),
    )


def _deviations(ranking: Ranking) -> dict[str, float]:
    ids = [candidate.id for candidate in ranking.candidates]
    return dict(zip(ids, zscore(ranking).scores, strict=True)) if ids else {}


def _rescaled(values: Sequence[float], head: Sequence[Fused], rest: Sequence[Fused]) -> list[float]:
    """Stretch values over the score range of `head`, above the rest."""
    low, high = head[-1].score, head[0].score
    if low == high:
        low = rest[0].score if rest else 0.0
    least, most = min(values), max(values)
    if least == most:
        return [high] * len(values)
    # Rounding may push the largest above `high`.
    return [min(high, low + (value - least) / (most - least) * (high - low)) for value in values]
