"""The recall configuration as one string: `rrf(k=60) | depth(100) | bonus(0.05) | prior(0.3)`.

docs/decisions/0006 explains the defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from trivet.common.bounded_cache import MIB, cached
from trivet.errors import InvalidInput
from trivet.graph.walk import WalkParameters
from trivet.models.rerank.registry import DEEPEST as DEEPEST_RERANK
from trivet.models.rerank.registry import OFF
from trivet.search.fuse import (
    Call,
    Fusion,
    Options,
    Scalar,
    fusion_from,
    parse_fusion,
    parse_pipeline,
    print_pipeline,
)
from trivet.search.legs.registry import leg_names
from trivet.search.rerank import MODELS, Rerank
from trivet.store.records import Bm25

Match = Literal["any", "all-then-any"]

# Later registered legs run only where a recipe names them.
DEFAULT_LEGS: tuple[str, ...] = ("lexical", "dense", "graph")
MATCHES: tuple[Match, ...] = ("any", "all-then-any")
DEEPEST = 1_000
# A store uses a few recipes, a search for a better one hundreds.
RECIPES_BYTES = 2 * MIB


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    fusion: Fusion = parse_fusion(
        "convex(norm=spread, norm.graph=raw, lexical=0.7, dense=12, graph=12)"
    )
    legs: tuple[str, ...] = DEFAULT_LEGS
    depth: int = 50
    match: Match = "all-then-any"
    bm25: Bm25 = Bm25(k1=0.9, b=0.4, content=1.0, title=1.0, keywords=0.5, tags=0.5, category=0.25)
    chance: float = 0.35
    walk: WalkParameters = WalkParameters()
    bonus: float = 0.05
    prior: float = 0.3
    time: float = 0.9
    rerank: Rerank | None = None  # None: as the settings say

    def __str__(self) -> str:
        return _printed(self)

    def calls(self) -> tuple[Call, ...]:
        return (
            self.fusion.call,
            Call("legs", self.legs),
            Call("depth", (float(self.depth),)),
            Call("match", (self.match,)),
            Call("bm25", (), _options(self.bm25)),
            Call("chance", (self.chance,)),
            Call("walk", (), _options(self.walk)),
            Call("bonus", (self.bonus,)),
            Call("prior", (self.prior,)),
            Call("time", (self.time,)),
            *([_rerank_call(self.rerank)] if self.rerank else []),
        )


def _options(constants: Bm25 | WalkParameters) -> Options:
    return Options(
        {field: float(getattr(constants, field)) for field in constants.__struct_fields__}
    )


def _rerank_call(step: Rerank) -> Call:
    if step.model == OFF:
        return Call("rerank", (OFF,))
    numbers = {"top": step.top, "blend": step.blend}
    options = Options(
        {name: float(number) for name, number in numbers.items() if number is not None}
    )
    return Call("rerank", (step.model,) if step.model else (), options)


@cached(RECIPES_BYTES)
def _printed(recipe: Recipe) -> str:
    return print_pipeline(recipe.calls())


DEFAULT = Recipe()


def parse_recipe(text: str, members: tuple[str, ...] = ()) -> Recipe:
    """Parse a recipe; `members` are external systems that a fusion may name like legs."""
    return _parsed(text, members, leg_names())


@cached(RECIPES_BYTES)
def _parsed(text: str, members: tuple[str, ...], legs: tuple[str, ...]) -> Recipe:
    """Cache by text and legs, so that a new leg is known at once."""
    if text.strip() == "default":
        return DEFAULT
    steps: dict[str, object] = {}
    for call in parse_pipeline(text):
        name = call.name if call.name in _STEPS else "fusion"
        if name in steps:
            raise InvalidInput(f"The recipe {text!r} has two {name} steps. Give each step once.")
        steps[name] = _fusion(call, members) if name == "fusion" else _STEPS[name](call)
    return msgspec.structs.replace(DEFAULT, **steps)


def _fusion(call: Call, members: tuple[str, ...] = ()) -> Fusion:
    try:
        fusion = fusion_from(call)
        named = {key.rpartition(".")[2] for key in fusion.options if "." in key} | set(
            fusion.weights
        )
        legs = (*leg_names(), *members)
        if unknown := sorted(named - set(legs)):
            raise InvalidInput(
                f"{fusion.method}: unknown leg {unknown[0]!r}; the legs are {', '.join(legs)}"
            )
        return fusion
    except InvalidInput as error:
        steps = ", ".join(name for name in _STEPS if name != "fusion")
        raise InvalidInput(f"{error}. Other steps: {steps}.") from None


def _legs(call: Call) -> tuple[str, ...]:
    known = leg_names()
    if not call.arguments or call.options or not set(call.arguments) <= set(known):
        raise InvalidInput(f"legs takes any of {', '.join(known)}, such as legs(lexical, dense).")
    return tuple(leg for leg in known if leg in call.arguments)


def _depth(call: Call) -> int:
    depth = _number(call, 1, DEEPEST)
    if depth != int(depth):
        raise InvalidInput("depth takes a whole number.")
    return int(depth)


def _match(call: Call) -> Match:
    for match in MATCHES:
        if call.arguments == (match,) and not call.options:
            return match
    raise InvalidInput(f"match takes one of {', '.join(MATCHES)}, such as match(any).")


def _bm25(call: Call) -> Bm25:
    values = _constants(call, DEFAULT.bm25, "bm25(k1=1.2, b=0.4)", 10)
    if values.get("b", 0) > 1:
        raise InvalidInput("bm25: b is the share of length normalization, 0 to 1.")
    return msgspec.structs.replace(DEFAULT.bm25, **values)


def _walk(call: Call) -> WalkParameters:
    values = _constants(call, DEFAULT.walk, "walk(seeds=5, onward=0.6)", 100)
    for name in ("hits", "onward"):
        if values.get(name, 0) > 1:
            raise InvalidInput(f"walk: {name} is a share, 0 to 1.")
    if values.get("rest", 1) == 0:
        raise InvalidInput(
            "walk: rest must be above 0; otherwise a memory with one concept passes all on."
        )
    return msgspec.structs.replace(DEFAULT.walk, **values)


def _rerank(call: Call) -> Rerank:
    known = all(key in ("top", "blend") for key in call.options)
    if len(call.arguments) > 1 or not known or any(model not in MODELS for model in call.arguments):
        raise InvalidInput(
            f"rerank takes one of {', '.join(MODELS)} and the numbers top and blend, such as "
            "rerank(best, top=20, blend=0.5)."
        )
    if call.arguments == (OFF,):
        if call.options:
            raise InvalidInput("rerank(off) takes no numbers.")
        return Rerank(OFF)
    values = {
        key: _bounded("rerank", key, value, 0, 1)
        for key, value in call.options.items()
        if key == "blend"
    }
    return Rerank(str(call.arguments[0]) if call.arguments else "", _top(call), **values)


def _top(call: Call) -> int | None:
    if "top" not in call.options:
        return None
    top = _bounded("rerank", "top", call.options["top"], 1, DEEPEST_RERANK)
    if top != int(top):
        raise InvalidInput("rerank: top takes a whole number.")
    return int(top)


def _constants(
    call: Call, defaults: Bm25 | WalkParameters, example: str, most: float
) -> dict[str, float]:
    known = defaults.__struct_fields__
    if call.arguments or any(key not in known for key in call.options):
        raise InvalidInput(
            f"{call.name} takes named numbers, any of {', '.join(known)}, such as {example}."
        )
    return {key: _bounded(call.name, key, value, 0, most) for key, value in call.options.items()}


def _share(call: Call) -> float:
    return _number(call, 0, 1)


def _number(call: Call, least: float, most: float) -> float:
    if len(call.arguments) != 1 or call.options:
        raise InvalidInput(
            f"{call.name} takes one number from {least:g} to {most:g}, "
            f"such as {call.name}({least:g})."
        )
    return _bounded(call.name, call.name, call.arguments[0], least, most)


def _bounded(step: str, name: str, value: Scalar, least: float, most: float) -> float:
    if isinstance(value, str) or not least <= value <= most:
        raise InvalidInput(
            f"{step}: {name} must be a number from {least:g} to {most:g}, not {value!r}."
        )
    return float(value)


_STEPS: dict[str, Callable[[Call], object]] = {
    "fusion": _fusion,
    "legs": _legs,
    "depth": _depth,
    "match": _match,
    "bm25": _bm25,
    "chance": lambda call: _number(call, 0, 2),
    "walk": _walk,
    "bonus": _share,
    "prior": _share,
    "time": _share,
    "rerank": _rerank,
}
