"""Unknown TRIVET_ variables are reported once, with the nearest known name."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import trivet
from trivet import Settings, load_settings
from trivet.settings import load as variables


@pytest.fixture(autouse=True)
def no_warnings_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "_warned", set())


def test_typo_is_reported_once_with_suggestion(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TRIVET_EMBEDER", "none")
    with caplog.at_level(logging.WARNING):
        assert load_settings().embedder == "bundled"
        load_settings()
    assert caplog.messages == [
        "The environment variable TRIVET_EMBEDER is unknown and has no effect. Did you mean TRIVET_EMBEDDER?"
    ]


def test_known_and_configured_variables_are_not_reported() -> None:
    system = {"wiki": {"command": ["wiki"], "key_env": "TRIVET_WIKI_TOKEN"}}
    settings = load_settings({}, federation=system)
    known = {f"TRIVET_{name.upper()}": "x" for name in Settings.__struct_fields__}
    assert (
        variables.unknown_variables({**known, "TRIVET_WIKI_TOKEN": "x", "TRIVETTE": "x"}, settings)
        == []
    )
    assert len(variables.unknown_variables({"TRIVET_XYZZY": "x"}, settings)) == 1


def test_variables_read_by_code_are_known() -> None:
    """A variable missing from the list would be reported as a typo."""
    files = Path(trivet.__file__).parent.rglob("*.py")
    read = {
        name
        for file in files
        for name in re.findall(r'"(TRIVET_[A-Z_]+[A-Z])"', file.read_text(encoding="utf-8"))
    }
    assert variables.unknown_variables(dict.fromkeys(read, "x"), Settings()) == []
    assert "TRIVET_MCP_REVEAL" in read
