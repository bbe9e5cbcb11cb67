"""The command line takes bounds, choices, help and suggestions from the contract."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from support.command_line import CommandLine
from trivet.cli.app import COMMAND_MODULES, root_command
from trivet.contract import VERBS, describe, json_schema

ID = "01997e00-0000-7000-8000-000000000001"


def bare(schema: dict[str, Any]) -> dict[str, Any]:
    return next(
        (option for option in schema.get("anyOf", ()) if option.get("type") != "null"), schema
    )


def outside(schema: dict[str, Any]) -> list[str]:
    """Return values just past each bound, and a value that is not a choice."""
    values = ["nonsense"] if "enum" in schema else []
    values += [str(schema["minimum"] - 1)] if "minimum" in schema else []
    values += [str(schema["maximum"] + 1)] if "maximum" in schema else []
    return values


@pytest.mark.parametrize(
    ("verb", "arguments"), [("recall", ["q"]), ("why_not", ["q", ID]), ("edit", [ID])]
)
def test_bounds_and_choices_match_the_contract(
    trivet: CommandLine, verb: str, arguments: list[str]
) -> None:
    schema = json_schema(VERBS[verb].request)
    for name, field in schema["properties"].items():
        inner = bare(field)
        for value in () if name in schema["required"] else outside(inner.get("items", inner)):
            option = f"--{name.replace('_', '-')}"
            result = trivet(verb.replace("_", "-"), *arguments, f"{option}={value}")
            assert (result.status, result.out) == (2, ""), (name, value)
            assert option in result.err


def test_option_help_and_defaults_match_the_contract() -> None:
    root = root_command()
    request = VERBS["recall"].request
    shown = {one.name: one for one in root.get_command(typer.Context(root), "recall").params}
    for name, field in json_schema(request)["properties"].items():
        assert describe(request, name) in shown[name].help
        assert shown[name].multiple or shown[name].default == field.get("default")


def test_help_has_an_example() -> None:
    root = root_command()
    for name in COMMAND_MODULES:
        if name == "mcp":  # its example is the command of an agent, which starts `trivet mcp`
            continue
        help = root.get_command(typer.Context(root), name).help
        assert f"Example:\n  trivet {name}" in help, name


def test_misspelled_command_is_suggested(trivet: CommandLine) -> None:
    result = trivet("recal", "x")
    assert result.status == 2
    assert "'recall'" in result.err
