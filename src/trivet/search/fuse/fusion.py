"""A fusion as a value that is read from a string and prints back to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trivet.errors import InvalidInput
from trivet.search.fuse.grammar import Call, Options, Scalar, parse_call, print_value
from trivet.search.fuse.methods import Method, Parameter, method_named, parameter_names


@dataclass(frozen=True, slots=True)
class Fusion:
    """A method and its options: the method's own ones all spelled out, leg weights as given. Never invalid."""

    method: str
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        method = method_named(self.method)
        defaults = {name: parameter.default for name, parameter in method.parameters.items()}
        options = _in_order(method, {**defaults, **self.options})
        Call(self.method, (), options)  # refuses what could not be printed, such as an infinite weight
        for key, value in options.items():
            _check_option(method, key, value)
        object.__setattr__(self, "options", options)

    def __str__(self) -> str:
        return str(self.call)

    @property
    def call(self) -> Call:
        """The same thing as a step of a recipe."""
        return Call(self.method, (), self.options)

    @property
    def weights(self) -> dict[str, float]:
        """The weights given by leg; a leg that is not named has 1."""
        own = method_named(self.method).parameters
        return {key: float(value) for key, value in self.options.items() if key not in own and "." not in key}


def parse_fusion(text: str) -> Fusion:
    """Read `convex(norm=zscore, dense=2)` and the like."""
    return fusion_from(parse_call(text))


def fusion_from(call: Call) -> Fusion:
    """Make a fusion of a step that was already read, for instance out of a longer recipe."""
    if call.arguments:
        first = print_value(call.arguments[0])
        raise InvalidInput(f"{call.name} takes named options only, not {first!r}; {_known(method_named(call.name))}")
    return Fusion(call.name, call.options)


def _in_order(method: Method, options: Mapping[str, Scalar]) -> Options:
    # One order for all, so that equal fusions print alike: the method's own, then per leg, then weights.
    def place(key: str) -> tuple[bool, bool, str]:
        return (key not in method.parameters, "." not in key, key)

    return Options((key, options[key]) for key in sorted(options, key=place))


def _check_option(method: Method, key: str, value: Scalar) -> None:
    parameter = _parameter_of(method, key)
    if parameter is not None:
        if not parameter.accepts(value):
            raise InvalidInput(f"{method.name}: {key} must be {parameter.expected}, not {print_value(value)!r}")
    elif "." in key or key in parameter_names():
        raise InvalidInput(f"{method.name} has no option {key!r}; {_known(method)}")
    elif isinstance(value, str) or not value >= 0:
        raise InvalidInput(
            f"{method.name}: {key} is taken for the weight of a leg and must be a number of 0 or more, "
            f"not {print_value(value)!r}; {_known(method)}"
        )


def _parameter_of(method: Method, key: str) -> Parameter | None:
    name, dot, _ = key.partition(".")
    parameter = method.parameters.get(name)
    return None if parameter is None or (dot and not parameter.per_leg) else parameter


def _known(method: Method) -> str:
    names = list(method.parameters)
    names += [f"{name}.<leg>" for name, parameter in method.parameters.items() if parameter.per_leg]
    return f"{method.name} knows {', '.join([*names, '<leg>'])}, where <leg>=number is the weight of a leg"
