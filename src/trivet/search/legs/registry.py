"""The legs there are. Their order here is the order in which they stand in recipes, traces and health."""

from __future__ import annotations

from trivet.errors import InvalidInput
from trivet.search.legs.dense import DENSE
from trivet.search.legs.graph import GRAPH
from trivet.search.legs.leg import Leg
from trivet.search.legs.lexical import LEXICAL

_legs: tuple[Leg, ...] = (
    LEXICAL,
    DENSE,
    GRAPH,
)


def legs() -> tuple[Leg, ...]:
    return _legs


def leg_names() -> tuple[str, ...]:
    return tuple(leg.name for leg in _legs)


def leg_named(name: str) -> Leg | None:
    """None for what stands in a trace beside the legs: another system, a reranker, rewrites of the query."""
    return next((leg for leg in _legs if leg.name == name), None)


def register(leg: Leg) -> None:
    """Adds a leg behind the others. A recipe runs it once it names it: `legs(lexical, NAME)`."""
    global _legs
    if leg_named(leg.name) is not None:
        raise InvalidInput(f"there is a leg {leg.name!r} already; choose another name")
    _legs = (*_legs, leg)


def unregister(name: str) -> None:
    global _legs
    _legs = tuple(leg for leg in _legs if leg.name != name)
