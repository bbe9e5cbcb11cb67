"""The embedded object, its client and the asynchronous one take the same arguments and give the same results."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from trivet import AsyncTrivet, Trivet
from trivet.client.call import ELSEWHERE, ROUTE_OF
from trivet.contract import BY_NAME, OPERATIONS, Operation

VERBS = sorted(name for name, value in vars(Trivet).items() if inspect.isfunction(value) and not name.startswith("_"))
OTHERWISE = {"close", "acting_as"}


def parameters(method: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(method, eval_str=False).parameters.values())[1:]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in OTHERWISE])
def test_the_asynchronous_verb_takes_the_same(verb: str) -> None:
    embedded, awaited = getattr(Trivet, verb), getattr(AsyncTrivet, verb)
    assert parameters(awaited) == parameters(embedded)
    assert awaited.__doc__ == embedded.__doc__
    expected = inspect.signature(embedded).return_annotation.replace("Iterator[str]", "AsyncIterator[str]")
    assert inspect.signature(awaited).return_annotation == expected
    assert inspect.iscoroutinefunction(awaited) or verb == "export"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_is_a_verb_with_the_defaults_of_the_contract(operation: Operation) -> None:
    """So that the client may leave out what is at its default, which the server fills in."""
    taken = {parameter.name: parameter for parameter in parameters(getattr(Trivet, operation.name))}
    fields = {field.name: field for field in msgspec.structs.fields(operation.request)}
    assert taken.keys() == fields.keys()
    for name, field in fields.items():
        required = field.default is msgspec.NODEFAULT
        assert taken[name].default == (inspect.Parameter.empty if required else field.default)


def test_every_verb_has_a_route_or_says_what_to_do_instead() -> None:
    streamed = {"remember_many", "diff", "export", "import_", "close"}
    assert set(VERBS) - streamed == (set(ROUTE_OF) | set(ELSEWHERE)) - {"engine"}
    assert set(ROUTE_OF) == set(BY_NAME)
