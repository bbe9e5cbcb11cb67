"""Helpers to write rankings by hand and with hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from trivet.search.fuse import Fusion, parse_fusion
from trivet.types import Candidate, Fused, Ranking

METHODS = (
    "rrf",
    "rrf(k=0)",
    "rrf(k=60, k.dense=10, lexical=2)",
    "convex",
    "convex(norm=tmm, dense=0.3)",
    "convex(norm=zscore)",
    "convex(norm=spread, lexical=1, dense=8)",
    "convex(norm=zscore, lexical=3, graph=0.1)",
    "convex(norm=dbsf)",
    "rsf(dense=0.7)",
    "dbsf",
    "tm2c2(lexical=2)",
    "saturation(half.lexical=4, dense=0.75, lexical=0.25)",
    "saturation(half.lexical=0.5, without=0, dense=1, lexical=3)",
)
LEGS = ("dense", "graph", "lexical")


def ranking(leg: str, floor: float, **scores: float) -> Ranking:
    return Ranking(
        leg=leg,
        floor=floor,
        candidates=tuple(Candidate(id=id, score=s) for id, s in scores.items()),
    )


def ids(fused: tuple[Fused, ...]) -> list[str]:
    return [one.id for one in fused]


def scores(fused: tuple[Fused, ...]) -> dict[str, float]:
    return {one.id: one.score for one in fused}


LEXICAL = ranking("lexical", 0.0, a=10.0, b=6.0, c=2.0)
DENSE = ranking("dense", -1.0, b=0.9, d=0.5)

any_score = st.floats(min_value=-1e6, max_value=1e6) | st.integers(-3, 3).map(float)
whole_score = st.integers(-1000, 1000).map(float)
fusions: st.SearchStrategy[Fusion] = st.sampled_from(METHODS).map(parse_fusion)


@st.composite
def a_ranking(
    draw: st.DrawFn, leg: str, score: st.SearchStrategy[float] = any_score, least: int = 0
) -> Ranking:
    chosen = draw(st.lists(st.sampled_from("abcdefghijklmnop"), unique=True, min_size=least))
    values = sorted((draw(score) for _ in chosen), reverse=True)
    below = draw(st.sampled_from([0.0, 1.0, 50.0]))
    floor = min(values, default=0.0) - below
    candidates = tuple(
        Candidate(id=id, score=value) for id, value in zip(chosen, values, strict=True)
    )
    return Ranking(leg=leg, floor=floor, candidates=candidates)


@st.composite
def some_rankings(draw: st.DrawFn, score: st.SearchStrategy[float] = any_score) -> list[Ranking]:
    legs = draw(st.lists(st.sampled_from(LEGS), unique=True, min_size=1))
    return [draw(a_ranking(leg, score)) for leg in legs]
