"""The command line says when nothing seems relevant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import CommandLine
from trivet import Trivet
from unit.search.relevance.conftest import NOTES

FOREIGN = "supersonic flow over a blunt body at high mach numbers"


def test_command_line_reports_relevance(
    trivet: CommandLine, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_EMBEDDER", "bundled")
    with Trivet.open(store, background=False) as memory:
        memory.remember_many({"content": note} for note in NOTES)
        memory.drain()

    def recalled(*arguments: str) -> str:
        return trivet("recall", *arguments).out

    assert "Probably nothing is relevant here" in recalled(FOREIGN)
    refused = recalled(FOREIGN, "--relevance-at-least", "0.5")
    assert "Nothing is relevant enough" in refused
    assert NOTES[0] not in refused
    found = json.loads(
        recalled("which port is the staging database on?", "--json", "--rerank", "off", "--expand")
    )
    assert found["hits"][0]["relevance"] > 0.5
    assert (found["nothing_relevant"], found["asked"]) == (False, [])
