"""Fusion: several rankings become one. Pure functions; a method is named by a string such as `rrf(k=60)`."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.search.fuse.check_ranking import check, check_all
from trivet.search.fuse.combine import merge, weigh
from trivet.search.fuse.fusion import Fusion, fusion_from, parse_fusion
from trivet.search.fuse.grammar import Call, Options, Scalar, parse_call, parse_pipeline, print_pipeline
from trivet.search.fuse.methods import method_named, register
from trivet.types import Fused, Ranking

__all__ = [
    "Call",
    "Fusion",
    "Options",
    "Scalar",
    "check",
    "fuse",
    "fusion_from",
    "parse_call",
    "parse_fusion",
    "parse_pipeline",
    "print_pipeline",
    "register",
]


def fuse(fusion: Fusion, rankings: Sequence[Ranking]) -> tuple[Fused, ...]:
    """Fuse what the legs returned, best first, scores on 0..1. Ties break by best rank in any leg, then by id."""
    check_all(rankings)
    legs = weigh(fusion.weights, rankings)
    return merge(method_named(fusion.method).combine(fusion.options, legs))
