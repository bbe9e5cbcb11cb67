"""Trivet's legs, in the order of recipes, traces and health."""

from __future__ import annotations

from trivet.search.legs.dense import DENSE
from trivet.search.legs.graph import GRAPH
from trivet.search.legs.leg import leg_named, leg_names, legs, register, unregister
from trivet.search.legs.lexical import LEXICAL

__all__ = ["leg_named", "leg_names", "legs", "register", "unregister"]

for _leg in (LEXICAL, DENSE, GRAPH):
    register(_leg)
