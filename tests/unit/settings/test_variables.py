"""A variable that begins with TRIVET_ and is none of ours is told, once, with the name that was meant."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import trivet
from trivet import Settings, load_settings
from trivet.settings import settings as variables


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "_warned", set())


def test_a_typo_is_told_once_with_the_nearest_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TRIVET_EMBEDER", "none")
    with caplog.at_level(logging.WARNING):
        assert load_settings().embedder == "bundled"
        load_settings()
    assert caplog.messages == [
        "The environment variable TRIVET_EMBEDER is not known, and has no effect. Did you mean TRIVET_EMBEDDER?"
    ]


def test_what_is_known_or_named_by_the_settings_is_not_told() -> None:
    system = {"wiki": {"command": ["wiki"], "key_env": "TRIVET_WIKI_TOKEN"}}
    settings = load_settings({}, federation=system)
    known = {f"TRIVET_{name.upper()}": "x" for name in Settings.__struct_fields__}
    assert (
        variables.unknown_variables({**known, "TRIVET_WIKI_TOKEN": "x", "TRIVETTE": "x"}, settings)
        == []
    )
    assert len(variables.unknown_variables({"TRIVET_XYZZY": "x"}, settings)) == 1


def test_every_variable_that_the_code_reads_is_known() -> None:
    """A name that some module reads and this list lacks would be called a typo."""
    files = Path(trivet.__file__).parent.rglob("*.py")
    read = {
        name
        for file in files
        for name in re.findall(r'"(TRIVET_[A-Z_]+[A-Z])"', file.read_text(encoding="utf-8"))
    }
    assert variables.unknown_variables(dict.fromkeys(read, "x"), Settings()) == []
    assert "TRIVET_MCP_REVEAL" in read
