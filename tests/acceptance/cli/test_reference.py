"""docs/cli.md matches the help of the commands."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from support.command_line import CommandLine
from trivet.cli import reference as cli_reference
from trivet.cli.app import COMMAND_MODULES, GROUPS

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


@cache
def reference() -> str:
    return cli_reference.reference()


def test_page_is_current() -> None:
    hint = "Make it anew: python -m trivet.cli.reference > docs/cli.md"
    assert PAGE.read_text(encoding="utf-8") == reference(), hint


def test_every_command_has_one_section() -> None:
    names = [*COMMAND_MODULES, *(f"{group} {name}" for group in GROUPS for name in GROUPS[group])]
    headings = re.findall(r"^###+ ([a-z -]+?)(?= [A-Z[]|$)", reference(), re.MULTILINE)
    assert sorted(headings) == sorted(names)


@pytest.mark.parametrize(
    "parameter", ["--as-of TEXT", "--root DIR", "--rerank auto|best", "TENANT  "]
)
def test_parameter_of_several_commands_is_explained_once(parameter: str) -> None:
    explained = [row for row in reference().splitlines() if row.startswith(parameter)]
    assert len(explained) == 1


def test_command_names_its_shared_options_with_its_own_default() -> None:
    assert "\nShared: filters, --limit [default: 366; 1<=x<=10000]\n" in _section("days")
    assert "\nAs for `recall`: QUERY, --sort, " in _section("why-not QUERY ID")


def _section(heading: str) -> str:
    return reference().partition(f"\n### {heading}\n")[2].partition("\n###")[0]


@pytest.mark.parametrize("group", [(), ("lab",), ("inbox",)], ids=" ".join)
def test_help_lists_each_command_once_in_short_sections(
    trivet: CommandLine, group: tuple[str, ...]
) -> None:
    text = trivet(*group, "--help").out
    lists = text.partition("Show this message and exit.")[2].strip().split("\n\n")
    sections = [re.findall(r"^  (\S+)", section, re.MULTILINE) for section in lists]
    assert all(0 < len(names) <= 8 for names in sections)
    known = GROUPS[group[0]] if group else COMMAND_MODULES
    assert sorted(name for names in sections for name in names) == sorted(known)
