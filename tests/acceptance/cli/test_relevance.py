"""The command line says plainly when nothing seems relevant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import CommandLine
from trivet import Trivet
from unit.search.relevance.conftest import NOTES

FOREIGN = "supersonic flow over a blunt body at high mach numbers"


def test_the_command_line_tells(
    trivet: CommandLine, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_EMBEDDER", "bundled")
    with Trivet.open(store, background=False) as memory:
        memory.remember_many({"content": note} for note in NOTES)
        memory.drain()

    def told(*arguments: str) -> str:
        return trivet("recall", *arguments).out

    assert "Probably nothing relevant here" in told(FOREIGN)
    refused = told(FOREIGN, "--relevance-at-least", "0.5")
    assert "Nothing is so relevant" in refused
    assert NOTES[0] not in refused
    found = json.loads(
        told("which port is the staging database on?", "--json", "--rerank", "off", "--expand")
    )
    assert found["hits"][0]["relevance"] > 0.5
    assert (found["nothing_relevant"], found["asked"]) == (False, [])
