"""docs/cli.md is the help of the commands as they are."""

from __future__ import annotations

from pathlib import Path

from trivet.cli.app import HOMES
from trivet.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_page_is_fresh() -> None:
    hint = "Make it anew: python -m trivet.cli.reference > docs/cli.md"
    assert PAGE.read_text(encoding="utf-8") == reference(), hint


def test_every_command_is_there() -> None:
    page = reference()
    assert [name for name in HOMES if f"\n## trivet {name}\n" not in page] == []
