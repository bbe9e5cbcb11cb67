"""What the stop hook's event leaves behind: in the inbox or in the store, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.conversations import Conversation
from support.invented_secrets import github
from support.opened import Opened
from support.served_stores import Houses, houses, key_of
from trivet import Trivet
from trivet.agents.capture import Captured, learn

SAID = "Please remember that the staging database listens on port 6543."
KEPT = "The staging database listens on port 6543."


def waiting(memory: Trivet) -> list[str]:
    return [one.content for one in memory.inbox_list().proposals]


def test_what_was_said_waits_in_the_inbox_with_its_reason(
    memory: Trivet, talk: Conversation
) -> None:
    talk.user(SAID).agent("Noted.")
    captured = learn(memory, talk.event)
    (found,) = memory.inbox_list().proposals
    assert captured == Captured(proposed=(found.id,))
    assert (found.content, found.kind, found.action, found.state) == (
        KEPT,
        "asked",
        "add",
        "waiting",
    )
    assert (found.tags, found.source) == (("captured", "shop"), str(talk.path))
    assert "asked" in found.reason
    assert memory.list().total == 0, "nothing is stored before it is accepted"


def test_a_turn_is_read_once(memory: Trivet, talk: Conversation) -> None:
    talk.user(SAID)
    assert learn(memory, talk.event).proposed
    assert learn(memory, talk.event) == Captured()
    talk.user("We decided to go with PostgreSQL for the analytics store.")
    assert len(learn(memory, talk.event).proposed) == 1
    assert len(waiting(memory)) == 2


def test_gemini_cli_is_read_too(memory: Trivet, talk: Conversation) -> None:
    """Its first line looks like one of Claude Code, and its hooks' text stands in the user's message."""
    opening = {"sessionId": talk.session, "projectHash": "efe2", "kind": "main"}
    setting = {
        "$set": {
            "messages": [
                {"type": "user", "content": [{"text": "<session_context>Remember that x is y."}]}
            ]
        }
    }
    recalled = "<hook_context>Remember that the canteen is closed.</hook_context>\n\n"
    message = {"id": "1", "type": "user", "content": [{"text": recalled + SAID}]}
    answer = {"id": "2", "type": "gemini", "content": "Remember that I am an agent."}
    for line in (opening, setting, message, answer, message):
        talk.raw(json.dumps(line) + "\n")
    learn(memory, talk.event)
    assert waiting(memory) == [KEPT]
    later = {
        **message,
        "id": "3",
        "content": "We decided to go with PostgreSQL for the analytics store.",
    }
    talk.raw(json.dumps(later) + "\n")
    assert len(learn(memory, talk.event).proposed) == 1


def test_an_agent_without_a_transcript_hands_over_what_was_said(memory: Trivet) -> None:
    event = {"session_id": "ses_1", "cwd": "/home/ana/shop", "user_messages": [SAID, 7, SAID]}
    assert len(learn(memory, event).proposed) == 1
    (found,) = memory.inbox_list().proposals
    assert (found.content, found.tags, found.source) == (
        KEPT,
        ("captured", "shop"),
        "conversation/ses_1",
    )


def test_a_line_that_is_being_written_waits_for_its_end(memory: Trivet, talk: Conversation) -> None:
    talk.user(SAID)
    whole = talk.path.read_text()
    talk.path.write_text(whole[:60])
    assert learn(memory, talk.event) == Captured()
    talk.path.write_text(whole)
    assert len(learn(memory, talk.event).proposed) == 1


def test_the_same_again_adds_nothing(memory: Trivet, talk: Conversation, tmp_path: Path) -> None:
    talk.user(SAID).user("remember: The staging database listens on port 6543!")
    captured = learn(memory, talk.event)
    assert (len(captured.proposed), captured.known) == (1, 1)
    other = Conversation(tmp_path, "another").user(SAID)
    assert learn(memory, other.event) == Captured(known=1)
    memory.inbox_accept(list(captured.proposed))
    third = Conversation(tmp_path, "third").user(SAID)
    assert learn(memory, third.event) == Captured(known=1)


def test_what_is_stored_is_not_proposed_and_what_changed_supersedes(
    memory: Trivet, talk: Conversation
) -> None:
    old = memory.remember(KEPT).id
    talk.user(SAID)
    assert learn(memory, talk.event) == Captured(known=1)
    talk.user("No, the staging database listens on port 6544, it is not 6543.")
    learn(memory, talk.event)
    (found,) = memory.inbox_list().proposals
    assert (found.action, found.memory, found.kind) == ("supersede", old, "correction")


def test_a_note_that_is_lost_makes_nothing_twice(
    memory: Trivet, talk: Conversation, tmp_path: Path
) -> None:
    """As where a process was killed after it had proposed and before it noted how far it was."""
    talk.user(SAID)
    assert len(learn(memory, talk.event).proposed) == 1
    (note,) = (tmp_path / "data" / "trivet" / "conversations").glob("*.json")
    note.write_text("{half of")
    assert learn(memory, talk.event) == Captured(known=1)
    note.unlink()
    assert learn(memory, talk.event) == Captured(known=1)


def test_a_rejected_one_does_not_come_back(
    memory: Trivet, talk: Conversation, tmp_path: Path
) -> None:
    talk.user(SAID)
    memory.inbox_reject(learn(memory, talk.event).proposed)
    again = Conversation(tmp_path, "again").user(
        "Remember: our staging database listens on port 6543"
    )
    other = Conversation(tmp_path, "other").user(SAID)
    assert learn(memory, other.event) == Captured(known=1)
    assert learn(memory, again.event).proposed == ()
    assert waiting(memory) == []


def test_straight_in_where_that_is_set(opened: Opened, talk: Conversation) -> None:
    memory = opened(capture="direct")
    talk.user(SAID).user("I prefer tabs over spaces.")
    captured = learn(memory, talk.event)
    assert len(captured.stored) == 2
    contents = {memory.get(id).content for id in captured.stored}
    assert contents == {KEPT, "User: I prefer tabs over spaces."}
    talk.user("No, the staging database listens on port 6544, it is not 6543.")
    assert len(learn(memory, talk.event).proposed) == 1, (
        "what would replace a memory is for the user to decide"
    )


def test_nothing_where_it_is_off(opened: Opened, talk: Conversation) -> None:
    memory = opened(capture="off")
    talk.user(SAID)
    assert learn(memory, talk.event) == Captured()
    assert waiting(memory) == []


def test_at_most_a_few_a_turn(opened: Opened, talk: Conversation) -> None:
    memory = opened(capture_most_a_turn=2)
    talk.user("\n".join(f"Remember that gate {name} opens at {name * 2}." for name in "abcde"))
    captured = learn(memory, talk.event)
    assert (len(captured.proposed), captured.left_out) == (2, 3)


def test_only_the_user_is_listened_to(memory: Trivet, talk: Conversation) -> None:
    talk.tool("Remember that tools say all kinds of things.")
    talk.agent("Remember that agents do, too, we decided.")
    talk.user("Remember that this is the program's own note.", isMeta=True)
    talk.user("Remember that a sidechain is another agent.", isSidechain=True)
    talk.user(
        '<memory-data nonce="ab">\nWe decided to use Oracle for everything.\n</memory-data nonce="ab">\nGo on.'
    )
    assert learn(memory, talk.event) == Captured()


def test_codex_as_well(memory: Trivet, tmp_path: Path) -> None:
    path = tmp_path / "rollout-1.jsonl"
    rows = [
        {"timestamp": "t", "type": "session_meta", "payload": {"id": "1", "cwd": "/home/ana/shop"}},
        {
            "timestamp": "t",
            "type": "event_msg",
            "payload": {"type": "user_message", "message": SAID},
        },
        {
            "timestamp": "t",
            "type": "event_msg",
            "payload": {"type": "agent_message", "message": "Remember that no."},
        },
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    learn(memory, {"session_id": "1", "transcript_path": str(path)})
    assert waiting(memory) == [KEPT]


@pytest.mark.parametrize(
    "event",
    [{}, {"transcript_path": ""}, {"transcript_path": 7}, {"transcript_path": "/no/such.jsonl"}],
)
def test_an_event_without_a_transcript_says_so(memory: Trivet, event: dict[str, object]) -> None:
    captured = learn(memory, event)
    assert len(captured.problems) == 1
    assert "transcript" in captured.problems[0]


def test_broken_lines_cost_themselves_alone(memory: Trivet, talk: Conversation) -> None:
    talk.raw("{not json\n").raw("[1, 2]\n").user(SAID).raw(
        "\udcff\n".encode("utf-8", "surrogateescape").decode("latin-1")
    )
    captured = learn(memory, talk.event)
    assert len(captured.proposed) == 1
    assert any("no JSON" in problem for problem in captured.problems)


def test_a_folder_or_a_pipe_is_no_transcript(memory: Trivet, tmp_path: Path) -> None:
    captured = learn(memory, {"session_id": "x", "transcript_path": str(tmp_path)})
    assert len(captured.problems) == 1


def test_secrets_go_nowhere(memory: Trivet, talk: Conversation, tmp_path: Path) -> None:
    secret = github("capture")
    talk.user(f"Remember that the deploy bot logs in with {secret} on the build server.")
    assert len(learn(memory, talk.event).proposed) == 1
    (found,) = memory.inbox_list().proposals
    assert "[secret:" in found.content
    assert "left out" in found.reason
    memory.inbox_accept([found.id])
    memory.close()
    talk.path.unlink()
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert secret.encode() not in stored
    assert secret[10:20].encode() not in stored


def test_secrets_are_masked_even_where_the_guard_is_off(opened: Opened, talk: Conversation) -> None:
    memory = opened(secrets="off")
    secret = github("off")
    talk.user(f"Remember that the deploy bot logs in with {secret} on the build server.")
    learn(memory, talk.event)
    assert secret not in memory.inbox_list().proposals[0].content


def test_over_the_disk_budget_nothing_is_captured(opened: Opened, talk: Conversation) -> None:
    memory = opened(disk_budget_mb=1)
    memory.remember_many({"content": f"{number} " + "x" * 30_000} for number in range(40))
    talk.user(SAID)
    captured = learn(memory, talk.event)
    assert "disk_budget_mb" in captured.problems[0]
    assert waiting(memory) == []


@pytest.fixture(scope="module")
def running() -> Iterator[Houses]:
    with houses() as found:
        yield found


def test_a_server_gets_the_proposals_of_its_user(
    tmp_path: Path, talk: Conversation, running: Houses
) -> None:
    with (
        running.at(str(tmp_path / "served.db"), embedder="none") as (address, house),
        Trivet.open(address, key=key_of(house, "ana")) as ana,
        Trivet.open(address, key=key_of(house, "ben")) as ben,
    ):
        talk.user(SAID)
        assert len(learn(ana, talk.event).proposed) == 1
        assert (waiting(ana), waiting(ben)) == ([KEPT], [])
        (accepted,) = ana.inbox_accept([ana.inbox_list().proposals[0].id])
        assert ana.get(str(accepted.stored)).owner == "ana"
