"""The verbs exist as methods of both facades."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from trivet import AsyncTrivet, Trivet
from trivet.contract import VERBS, describe


@pytest.mark.parametrize("name", ["remember", "recall", "edit", "concepts", "reindex"])
def test_docstring_describes_every_parameter(name: str) -> None:
    method, verb = getattr(Trivet, name), VERBS[name]
    assert method.__doc__.startswith(verb.summary)
    for parameter in verb.request.__struct_fields__:
        text = describe(verb.request, parameter) if verb.needs != "store" else ""
        assert f":param {parameter}: {text}" in method.__doc__


def test_required_parameters_are_positional() -> None:
    kinds = {name: one.kind for name, one in inspect.signature(Trivet.why_not).parameters.items()}
    assert [
        name for name, kind in kinds.items() if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ] == ["query", "id"]
    assert kinds["limit"] is inspect.Parameter.KEYWORD_ONLY


def test_both_facades_have_every_verb() -> None:
    for name in VERBS:
        awaited: Any = getattr(AsyncTrivet, name)
        assert inspect.iscoroutinefunction(awaited)
        assert inspect.signature(awaited) == inspect.signature(getattr(Trivet, name))


def test_wrong_arguments_raise_type_error(path: Path) -> None:
    with Trivet.open(path, embedder="none") as memory:
        with pytest.raises(
            TypeError, match=r"recall\(\) got an unexpected keyword argument 'limitt'"
        ):
            memory.recall("text", limitt=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"get\(\) missing a required argument: 'id'"):
            memory.get()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"recall\(\) too many positional arguments"):
            memory.recall("text", 3)  # type: ignore[call-arg, arg-type]
