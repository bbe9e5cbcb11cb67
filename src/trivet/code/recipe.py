"""Recipes of code search: `convex(...) | bm25(name=3) | definitions(exact=1) | ...`.

docs/decisions/0035 has the defaults.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from trivet.code.search.legs import CodeBm25, DefinitionWeights, PathWeights
from trivet.common.bounded_cache import MIB, cached
from trivet.errors import InvalidInput
from trivet.search.fuse import (
    Call,
    Fusion,
    Options,
    fusion_from,
    parse_fusion,
    parse_pipeline,
    print_pipeline,
)

LEGS = ("lexical", "dense", "definitions", "paths")
DEEPEST = 1_000
RECIPES_BYTES = MIB


class Demote(msgspec.Struct, frozen=True):
    """Score factors for files of these roles, unless the query asks for them.

    `undefined`: for chunks that do not define the query's only name while others do.
    """

    test: float = 0.3
    example: float = 0.3
    documentation: float = 0.3
    vendored: float = 0.3
    configuration: float = 0.5
    declaration: float = 0.8
    undefined: float = 0.4


class Balance(msgspec.Struct, frozen=True):
    """Weights of the chunks of one file.

    The best counts fully, each further one (at most `chunks`) `more` times the one before; for long
    queries, such as pasted issues, `broad` times. Further chunks of a file already shown are
    multiplied by `again`.
    """

    more: float = 0.3
    broad: float = 0.7
    chunks: float = 20.0
    again: float = 0.5


class CodeRecipe(msgspec.Struct, frozen=True, kw_only=True):
    fusion: Fusion = parse_fusion(
        "convex(norm=tmm, norm.definitions=unit, norm.paths=unit, "
        "lexical=1, dense=0.5, definitions=1.5, paths=1.25)"
    )
    depth: int = 400
    bm25: CodeBm25 = CodeBm25()
    definitions: DefinitionWeights = DefinitionWeights()
    paths: PathWeights = PathWeights()
    demote: Demote = Demote()
    balance: Balance = Balance()

    def __str__(self) -> str:
        numbers = ("bm25", "definitions", "paths", "demote", "balance")
        calls = [Call(name, (), _options(getattr(self, name))) for name in numbers]
        return print_pipeline([self.fusion.call, Call("depth", (float(self.depth),)), *calls])


def _options(numbers: msgspec.Struct) -> Options:
    return Options({field: float(getattr(numbers, field)) for field in numbers.__struct_fields__})


DEFAULT = CodeRecipe()


@cached(RECIPES_BYTES)
def parse_code_recipe(text: str) -> CodeRecipe:
    if text.strip() in ("", "default"):
        return DEFAULT
    steps: dict[str, object] = {}
    for call in parse_pipeline(text):
        name = call.name if call.name in _STEPS else "fusion"
        if name in steps:
            raise InvalidInput(f"The recipe {text!r} has two {name} steps. Give each step once.")
        steps[name] = _STEPS[name](call)
    return msgspec.structs.replace(DEFAULT, **steps)


def _fusion(call: Call) -> Fusion:
    try:
        fusion = fusion_from(call)
    except InvalidInput as error:
        raise InvalidInput(f"{error}. Other steps: {', '.join(_STEPS)}.") from None
    named = {key.rpartition(".")[2] for key in fusion.options if "." in key} | set(fusion.weights)
    if unknown := sorted(named - set(LEGS)):
        raise InvalidInput(
            f"{fusion.method}: there is no leg {unknown[0]!r}; the legs are {', '.join(LEGS)}."
        )
    return fusion


def _depth(call: Call) -> int:
    if len(call.arguments) != 1 or call.options or call.arguments[0] not in range(1, DEEPEST + 1):
        raise InvalidInput(
            f"depth takes one whole number from 1 to {DEEPEST}, such as depth({DEFAULT.depth})."
        )
    return int(call.arguments[0])


def _numbers(default: msgspec.Struct, most: float) -> Callable[[Call], msgspec.Struct]:
    def read(call: Call) -> msgspec.Struct:
        known = default.__struct_fields__
        for key, value in call.options.items():
            if key not in known or isinstance(value, str) or not 0 <= value <= most:
                raise InvalidInput(
                    f"{call.name} takes numbers from 0 to {most:g} named {', '.join(known)}, "
                    f"not {key}={value}."
                )
        if call.arguments:
            raise InvalidInput(f"{call.name} takes named numbers: {', '.join(known)}.")
        return msgspec.structs.replace(default, **call.options)

    return read


_STEPS: dict[str, Callable[[Call], object]] = {
    "depth": _depth,
    "bm25": _numbers(CodeBm25(), 20),
    "definitions": _numbers(DefinitionWeights(), 20),
    "paths": _numbers(PathWeights(), 20),
    "demote": _numbers(Demote(), 1),
    "balance": _numbers(Balance(), 20),
    "fusion": _fusion,
}
