"""The command line says plainly when nothing seems relevant."""

from __future__ import annotations

import json
from pathlib import Path

from support.command_line import process
from trivet import Trivet
from unit.search.relevance.conftest import NOTES

FOREIGN = "supersonic flow over a blunt body at high mach numbers"


def test_the_command_line_tells(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Trivet.open(path, background=False) as trivet:
        trivet.remember_many({"content": note} for note in NOTES)
        trivet.drain()

    def told(*arguments: str) -> str:
        return process("recall", *arguments, TRIVET_PATH=str(path), TRIVET_EMBEDDER="bundled").out

    assert "Probably nothing relevant here" in told(FOREIGN)
    refused = told(FOREIGN, "--relevance-at-least", "0.5")
    assert "Nothing is so relevant" in refused
    assert NOTES[0] not in refused
    found = json.loads(told("which port is the staging database on?", "--json", "--rerank", "off", "--expand"))
    assert found["hits"][0]["relevance"] > 0.5
    assert (found["nothing_relevant"], found["asked"]) == (False, [])
