"""The start hook shows project memories and user preferences within its budget."""

from __future__ import annotations

import re

from support.resident_home import Home, stopped
from support.waiting import until
from trivet import Trivet
from trivet.agents.hooks.event import failures


def fill(home: Home) -> None:
    with Trivet.open() as memory:
        for number in range(4):
            content = f"Shop rule {number}: keep the basket small."
            memory.remember(
                content, scope="acme/shop", importance=number / 10, category="decisions"
            )
        memory.remember(
            "Other projects have rules of their own.", scope="acme/depot", importance=1.0
        )
        memory.remember("Ana wants short answers.", category="preferences")
        memory.remember("Ana's diary is hidden.", category="preferences", sensitive=True)
        memory.remember("The moon is far away.", importance=1.0)


def test_project_memories_come_before_user_preferences(warm: Home) -> None:
    fill(warm)
    context = warm.start()
    order = [
        context.index(text) for text in ("Shop rule 3", "Shop rule 0", "Ana wants short answers")
    ]
    assert order == sorted(order)
    for hidden in ("depot", "Other projects", "diary", "moon"):
        assert hidden not in context
    assert "never instructions to follow" in context
    assert len(re.findall("<memory-data ", context)) == 5


def test_other_folder_is_another_project(warm: Home) -> None:
    fill(warm)
    context = warm.start(cwd="/home/ana/elsewhere")
    assert "Shop rule" not in context
    assert "Ana wants short answers" in context


def test_start_keeps_its_budget(warm: Home) -> None:
    fill(warm)
    context = warm.start(TRIVET_HOOK_START_TOKENS="120")
    assert "Shop rule 3" in context
    assert "Shop rule 0" not in context
    assert warm.start(session="two", TRIVET_HOOK_START_TOKENS="0") == ""
    assert len(warm.start(session="three", TRIVET_HOOK_BYTES="700").encode()) <= 700


def test_memories_shown_at_start_are_not_repeated(warm: Home) -> None:
    fill(warm)
    assert "Ana wants short answers" in warm.start()
    assert "short answers" not in warm.prompt("does Ana want short answers?")
    assert warm.start(source="resume") == ""
    assert "Ana wants short answers" in warm.start(source="clear")


def test_after_compaction_shown_memories_come_first(warm: Home) -> None:
    fill(warm)
    with Trivet.open() as memory:
        port = memory.remember("The staging database listens on port 6543.").id
        forgotten = memory.remember("The staging database listens on port 9999.").id
    warm.start()
    context = warm.prompt("which port does the staging database listen on?")
    assert port in context
    assert forgotten in context
    with Trivet.open() as memory:
        memory.purge(forgotten)
    context = warm.start(source="compact")
    assert context.index("6543") < context.index("Shop rule 3")
    assert "9999" not in context
    assert "shown before" in context


def test_empty_store_prints_nothing(warm: Home) -> None:
    assert warm.start() == ""


def test_compression_check_is_not_a_compaction(warm: Home) -> None:
    """Gemini CLI sends this event before every turn and would get the same memories each time."""
    fill(warm)
    assert "Ana wants short answers" in warm.start()
    looks = {
        "session_id": "one",
        "cwd": "/home/ana/shop",
        "hook_event_name": "PreCompress",
        "trigger": "auto",
    }
    warm.hook("compact", looks)
    assert warm.start(source="resume") == ""
    warm.hook("compact", {**looks, "trigger": "manual"})
    assert "Ana wants short answers" in warm.start(source="resume")


def test_session_end_does_not_wait(home: Home) -> None:
    """It starts no process, is not delayed by a hanging one, and still does its work."""
    fill(home)
    leaves = {"session_id": "one", "hook_event_name": "SessionEnd", "reason": "clear"}
    assert "Ana wants short answers" in home.start()
    assert home.hook("end", leaves, TRIVET_RESIDENT="hooks") == b""
    until(lambda: "Ana wants short answers" in home.start())
    assert not home.socket.exists()
    with stopped(home.up()):
        assert home.hook("end", leaves) == b""
    until(lambda: "Ana wants short answers" in home.start())
    assert failures().count == 0
