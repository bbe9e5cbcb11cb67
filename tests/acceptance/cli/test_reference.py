"""docs/cli.md matches the help of the commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.command_line import CommandLine
from trivet.cli.app import COMMAND_MODULES, GROUPS
from trivet.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def test_page_is_current() -> None:
    hint = "Make it anew: python -m trivet.cli.reference > docs/cli.md"
    assert PAGE.read_text(encoding="utf-8") == reference(), hint


def test_every_command_is_listed() -> None:
    page = reference()
    assert [name for name in COMMAND_MODULES if f"\n## trivet {name}\n" not in page] == []


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
