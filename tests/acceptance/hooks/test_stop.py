"""The stop hook puts notable user statements into the inbox, where recall does not find them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import CommandLine
from support.conversations import Conversation
from support.resident_home import Home
from trivet.agents.hooks.event import failures

SAID = "Please remember that the harbour gate opens at six in summer."


@pytest.mark.parametrize("running", [True, False])
def test_user_statement_waits_in_the_inbox(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    if running:
        home.up()
    talk = Conversation(tmp_path).user(SAID).agent("I will.")
    assert home.hook("stop", talk.event) == b""
    with home.memory() as memory:
        (proposal,) = memory.inbox_list().proposals
        assert "harbour gate opens at six" in proposal.content
        assert memory.recall("when does the harbour gate open?").hits == ()
    trivet = CommandLine(monkeypatch)
    assert trivet("inbox", "accept", proposal.id).status == 0
    with home.memory() as memory:
        assert "harbour gate" in memory.recall("when does the harbour gate open?").hits[0].content
    assert home.hook("stop", talk.event) == b"", "a transcript is read once"
    with home.memory() as memory:
        assert memory.inbox_list().proposals == ()


def test_unreadable_transcript_is_counted_and_silent(warm: Home, tmp_path: Path) -> None:
    missing = Conversation(tmp_path)
    assert warm.hook("stop", missing.event) == b""
    assert failures().moments == {"stop": 1}
    assert "transcript" in (failures().last or "")


def test_status_reports_the_budgets(
    warm: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trivet = CommandLine(monkeypatch)
    assert json.loads(trivet("status", "--json").out)["budgets"] == [], (
        "`status` must not create a store"
    )
    assert not warm.store.exists()
    warm.remember("The harbour gate opens at six.")
    result = trivet("status")
    assert "store on disk: " in result.out
    assert "language model for capture: not in use" in result.out
    (tmp_path / "broken.db").write_bytes(b"no database at all" * 1000)
    broken = trivet("status", "--path", str(tmp_path / "broken.db"))
    assert "Up for" in broken.out
    assert "warning" in broken.err
