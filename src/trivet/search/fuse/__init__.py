"""Fusion: several rankings become one. Pure functions; a method is named by a string such as `rrf(k=60)`."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.search.fuse.check_ranking import check, check_all
from trivet.search.fuse.combine import merge
from trivet.search.fuse.grammar import Call, Options, Scalar, parse_call, parse_pipeline, print_pipeline
from trivet.search.fuse.method import Evidence
from trivet.search.fuse.parse import Fusion, fusion_from, parse_fusion
from trivet.search.fuse.registry import method_named, register
from trivet.search.fuse.weights import weigh
from trivet.types import Fused, Ranking

__all__ = [
    "Call",
    "Evidence",
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


def fuse(fusion: Fusion, rankings: Sequence[Ranking], evidence: Evidence | None = None) -> tuple[Fused, ...]:
    """Fuse what the legs returned, best first, scores on 0..1. Ties break by best rank in any leg, then by id.

    `evidence` tells how the memories' own words answer the query, to a method that learned to use it.
    """
    check_all(rankings)
    legs = weigh(fusion.weights, rankings)
    method = method_named(fusion.method)
    fused = merge(method.combine(fusion.options, legs))
    return fused if method.refine is None else method.refine(fused, [ranking for ranking, _ in legs], evidence)
