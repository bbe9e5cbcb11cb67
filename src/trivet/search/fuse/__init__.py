"""Rank fusion: pure functions, with a method named by a string such as `rrf(k=60)`."""

from __future__ import annotations

from trivet.search.fuse.fusion import Fusion, check, fuse, fusion_from, parse_fusion
from trivet.search.fuse.grammar import (
    Call,
    Options,
    Scalar,
    parse_call,
    parse_pipeline,
    print_pipeline,
)
from trivet.search.fuse.methods import register

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
