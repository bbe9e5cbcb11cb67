"""The command line and the contract cannot drift apart: names, places, defaults, bounds, choices and help agree."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from support.command_line import CommandLine
from trivet import contract
from trivet.cli.app import GROUPS, HOMES, root_command
from trivet.contract import OPERATIONS, Operation

ID = "01997e00-0000-7000-8000-000000000001"
PLACED = {"concepts": ["text"]}  # may be left out, and still needs no name
CHOICES = {"kind": "see-also", "verdict": "useful"}
COMMON = {"path", "as_json", "help"}
EXTRA = {"purge": {"yes"}, "graph": {"dot", "svg"}}


def words_of(operation: Operation) -> list[str]:
    """What is typed: the name, or the group and the name within it."""
    group, _, own = operation.name.partition("_")
    return [group, own.replace("_", "-")] if group in GROUPS else [operation.name.replace("_", "-")]


def command_of(operation: Operation) -> Any:
    found = root_command()
    for word in words_of(operation):
        found = found.get_command(typer.Context(found), word)
    return found


@pytest.fixture(params=OPERATIONS, ids=lambda operation: operation.name)
def operation(request: pytest.FixtureRequest) -> Operation:
    verb: Operation = request.param
    return verb


def parameters(operation: Operation) -> dict[str, Any]:
    return {parameter.name: parameter for parameter in command_of(operation).params}


def bare(schema: dict[str, Any]) -> dict[str, Any]:
    return next((option for option in schema.get("anyOf", ()) if option.get("type") != "null"), schema)


def properties(operation: Operation) -> list[tuple[str, dict[str, Any]]]:
    return list(contract.json_schema(operation.request).get("properties", {}).items())


def outside(schema: dict[str, Any]) -> list[str]:
    """Values just past each bound, or that are no choice."""
    values = ["nonsense"] if "enum" in schema else []
    values += [str(schema["minimum"] - 1)] if "minimum" in schema else []
    values += [str(schema["maximum"] + 1)] if "maximum" in schema else []
    return values


def test_every_operation_is_a_command(operation: Operation) -> None:
    assert words_of(operation)[0] in HOMES
    assert command_of(operation).help.startswith(operation.summary)


def test_fields_are_parameters(operation: Operation) -> None:
    fields = set(operation.request.__struct_fields__)
    assert set(parameters(operation)) - COMMON == fields | EXTRA.get(operation.name, set())


def test_required_fields_are_arguments_in_order(operation: Operation) -> None:
    required = contract.json_schema(operation.request).get("required", [])
    arguments = [name for name, parameter in parameters(operation).items() if parameter.param_type_name == "argument"]
    assert arguments == [*required, *PLACED.get(operation.name, ())]


def test_defaults_and_help(operation: Operation) -> None:
    shown = parameters(operation)
    for name, schema in properties(operation):
        parameter, inner = shown[name], bare(schema)
        assert contract.describe(operation.request, name) in parameter.help
        if inner.get("type") == "array":
            assert parameter.multiple or parameter.nargs == -1
        else:
            assert parameter.default == schema.get("default")


def test_bounds_and_choices_are_those_of_the_contract(trivet: CommandLine, operation: Operation) -> None:
    required = contract.json_schema(operation.request).get("required", [])
    arguments = [CHOICES.get(name, ID) for name in required]
    for name, schema in properties(operation):
        inner = bare(schema)
        for value in () if name in required else outside(inner.get("items", inner)):
            result = trivet(*words_of(operation), *arguments, f"--{name.replace('_', '-')}={value}")
            assert (result.status, result.out) == (2, ""), (name, value)
            assert f"--{name.replace('_', '-')}" in result.err


def test_help_has_an_example() -> None:
    root = root_command()
    for name in HOMES:
        assert f"Example:\n  trivet {name}" in root.get_command(typer.Context(root), name).help or name in ("mcp",)


def test_misspelt_command_is_suggested(trivet: CommandLine) -> None:
    result = trivet("recal", "x")
    assert result.status == 2
    assert "'recall'" in result.err
