"""The server documentation lists every setting and every problem type."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivet.contract import json_schema
from trivet.serve.http.errors import ALL_PROBLEMS
from trivet.settings import Settings

PAGE = (Path(__file__).parents[3] / "docs" / "server.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", [name for name in Settings.__struct_fields__ if name.startswith("server_")]
)
def test_docs_list_every_setting(name: str) -> None:
    value = getattr(Settings(), name)
    shown = f"{value:,}" if isinstance(value, (int, float)) else (value or "none")
    text = json_schema(Settings)["properties"][name]["description"].removeprefix("Server: ")
    assert f"| `{name}` | {shown} | {text[0].upper()}{text[1:]} |" in PAGE


def test_docs_list_every_problem() -> None:
    for problem in ALL_PROBLEMS.values():
        assert f"`{problem.name}`" in PAGE or problem.name == "leg-failed"
        assert f"| {problem.status} |" in PAGE
