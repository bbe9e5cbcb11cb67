"""A stop hook event leaves each captured statement once, in the inbox or the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.conversations import Conversation
from support.invented_secrets import github
from support.served_stores import ServedStores, key_of, serve_stores
from support.store_fixtures import Opened
from trivet import Trivet
from trivet.agents.capture import Captured, learn

MESSAGE = "Please remember that the staging database listens on port 6543."
STATEMENT = "The staging database listens on port 6543."


def waiting(memory: Trivet) -> list[str]:
    return [one.content for one in memory.inbox_list().proposals]


def test_statement_waits_in_the_inbox_with_its_reason(memory: Trivet, talk: Conversation) -> None:
    talk.user(MESSAGE).agent("Noted.")
    captured = learn(memory, talk.event)
    (found,) = memory.inbox_list().proposals
    assert captured == Captured(proposed=(found.id,))
    assert (found.content, found.kind, found.action, found.state) == (
        STATEMENT,
        "asked",
        "add",
        "waiting",
    )
    assert (found.tags, found.source) == (("captured", "shop"), str(talk.path))
    assert "asked" in found.reason
    assert memory.list().total == 0, "nothing is stored before it is accepted"


def test_turn_is_read_once(memory: Trivet, talk: Conversation) -> None:
    talk.user(MESSAGE)
    assert learn(memory, talk.event).proposed
    assert learn(memory, talk.event) == Captured()
    talk.user("We decided to go with PostgreSQL for the analytics store.")
    assert len(learn(memory, talk.event).proposed) == 1
    assert len(waiting(memory)) == 2


def test_gemini_cli_transcript_is_read(memory: Trivet, talk: Conversation) -> None:
    """The first line resembles Claude Code's, and hook text is inside the user's message."""
    opening = {"sessionId": talk.session, "projectHash": "efe2", "kind": "main"}
    setting = {
        "$set": {
            "messages": [
                {"type": "user", "content": [{"text": "<session_context>Remember that x is y."}]}
            ]
        }
    }
    recalled = "<hook_context>Remember that the canteen is closed.</hook_context>\n\n"
    message = {"id": "1", "type": "user", "content": [{"text": recalled + MESSAGE}]}
    answer = {"id": "2", "type": "gemini", "content": "Remember that I am an agent."}
    for line in (opening, setting, message, answer, message):
        talk.raw(json.dumps(line) + "\n")
    learn(memory, talk.event)
    assert waiting(memory) == [STATEMENT]
    later = {
        **message,
        "id": "3",
        "content": "We decided to go with PostgreSQL for the analytics store.",
    }
    talk.raw(json.dumps(later) + "\n")
    assert len(learn(memory, talk.event).proposed) == 1


def test_messages_in_the_event_replace_a_transcript(memory: Trivet) -> None:
    event = {"session_id": "ses_1", "cwd": "/home/ana/shop", "user_messages": [MESSAGE, 7, MESSAGE]}
    assert len(learn(memory, event).proposed) == 1
    (found,) = memory.inbox_list().proposals
    assert (found.content, found.tags, found.source) == (
        STATEMENT,
        ("captured", "shop"),
        "conversation/ses_1",
    )


def test_incomplete_line_waits_for_its_end(memory: Trivet, talk: Conversation) -> None:
    talk.user(MESSAGE)
    whole = talk.path.read_text()
    talk.path.write_text(whole[:60])
    assert learn(memory, talk.event) == Captured()
    talk.path.write_text(whole)
    assert len(learn(memory, talk.event).proposed) == 1


def test_repeated_statement_adds_nothing(
    memory: Trivet, talk: Conversation, tmp_path: Path
) -> None:
    talk.user(MESSAGE).user("remember: The staging database listens on port 6543!")
    captured = learn(memory, talk.event)
    assert (len(captured.proposed), captured.known) == (1, 1)
    other = Conversation(tmp_path, "another").user(MESSAGE)
    assert learn(memory, other.event) == Captured(known=1)
    memory.inbox_accept(list(captured.proposed))
    third = Conversation(tmp_path, "third").user(MESSAGE)
    assert learn(memory, third.event) == Captured(known=1)


def test_stored_statement_is_known_and_change_supersedes(
    memory: Trivet, talk: Conversation
) -> None:
    old = memory.remember(STATEMENT).id
    talk.user(MESSAGE)
    assert learn(memory, talk.event) == Captured(known=1)
    talk.user("No, the staging database listens on port 6544, it is not 6543.")
    learn(memory, talk.event)
    (found,) = memory.inbox_list().proposals
    assert (found.action, found.memory, found.kind) == ("supersede", old, "correction")


def test_lost_progress_note_causes_no_duplicates(
    memory: Trivet, talk: Conversation, tmp_path: Path
) -> None:
    """As after a kill between proposing and saving the position."""
    talk.user(MESSAGE)
    assert len(learn(memory, talk.event).proposed) == 1
    (note,) = (tmp_path / "data" / "trivet" / "conversations").glob("*.json")
    note.write_text("{half of")
    assert learn(memory, talk.event) == Captured(known=1)
    note.unlink()
    assert learn(memory, talk.event) == Captured(known=1)


def test_rejected_statement_is_not_proposed_again(
    memory: Trivet, talk: Conversation, tmp_path: Path
) -> None:
    talk.user(MESSAGE)
    memory.inbox_reject(learn(memory, talk.event).proposed)
    again = Conversation(tmp_path, "again").user(
        "Remember: our staging database listens on port 6543"
    )
    other = Conversation(tmp_path, "other").user(MESSAGE)
    assert learn(memory, other.event) == Captured(known=1)
    assert learn(memory, again.event).proposed == ()
    assert waiting(memory) == []


def test_direct_capture_stores_at_once(opened: Opened, talk: Conversation) -> None:
    memory = opened(capture="direct")
    talk.user(MESSAGE).user("I prefer tabs over spaces.")
    captured = learn(memory, talk.event)
    assert len(captured.stored) == 2
    contents = {memory.get(id).content for id in captured.stored}
    assert contents == {STATEMENT, "User: I prefer tabs over spaces."}
    talk.user("No, the staging database listens on port 6544, it is not 6543.")
    assert len(learn(memory, talk.event).proposed) == 1, (
        "replacing a memory needs the user's decision"
    )


def test_capture_can_be_off(opened: Opened, talk: Conversation) -> None:
    memory = opened(capture="off")
    talk.user(MESSAGE)
    assert learn(memory, talk.event) == Captured()
    assert waiting(memory) == []


def test_statements_per_turn_are_limited(opened: Opened, talk: Conversation) -> None:
    memory = opened(capture_most_a_turn=2)
    talk.user("\n".join(f"Remember that gate {name} opens at {name * 2}." for name in "abcde"))
    captured = learn(memory, talk.event)
    assert (len(captured.proposed), captured.left_out) == (2, 3)


def test_only_user_messages_are_captured(memory: Trivet, talk: Conversation) -> None:
    talk.tool("Remember that tools say all kinds of things.")
    talk.agent("Remember that agents do, too, we decided.")
    talk.user("Remember that this is the program's own note.", isMeta=True)
    talk.user("Remember that a sidechain is another agent.", isSidechain=True)
    talk.user(
        '<memory-data nonce="ab">\nWe decided to use Oracle for everything.\n</memory-data nonce="ab">\nGo on.'
    )
    assert learn(memory, talk.event) == Captured()


def test_codex_transcript_is_read(memory: Trivet, tmp_path: Path) -> None:
    path = tmp_path / "rollout-1.jsonl"
    rows = [
        {"timestamp": "t", "type": "session_meta", "payload": {"id": "1", "cwd": "/home/ana/shop"}},
        {
            "timestamp": "t",
            "type": "event_msg",
            "payload": {"type": "user_message", "message": MESSAGE},
        },
        {
            "timestamp": "t",
            "type": "event_msg",
            "payload": {"type": "agent_message", "message": "Remember that no."},
        },
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    learn(memory, {"session_id": "1", "transcript_path": str(path)})
    assert waiting(memory) == [STATEMENT]


@pytest.mark.parametrize(
    "event",
    [{}, {"transcript_path": ""}, {"transcript_path": 7}, {"transcript_path": "/no/such.jsonl"}],
)
def test_event_without_a_transcript_is_reported(memory: Trivet, event: dict[str, object]) -> None:
    captured = learn(memory, event)
    assert len(captured.problems) == 1
    assert "transcript" in captured.problems[0]


def test_broken_line_is_skipped_alone(memory: Trivet, talk: Conversation) -> None:
    talk.raw("{not json\n").raw("[1, 2]\n").user(MESSAGE).raw(
        "\udcff\n".encode("utf-8", "surrogateescape").decode("latin-1")
    )
    captured = learn(memory, talk.event)
    assert len(captured.proposed) == 1
    assert any("not JSON" in problem for problem in captured.problems)


def test_folder_is_not_a_transcript(memory: Trivet, tmp_path: Path) -> None:
    captured = learn(memory, {"session_id": "x", "transcript_path": str(tmp_path)})
    assert len(captured.problems) == 1


def test_secrets_are_not_stored(memory: Trivet, talk: Conversation, tmp_path: Path) -> None:
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


def test_secrets_are_masked_even_with_secrets_off(opened: Opened, talk: Conversation) -> None:
    memory = opened(secrets="off")
    secret = github("off")
    talk.user(f"Remember that the deploy bot logs in with {secret} on the build server.")
    learn(memory, talk.event)
    assert secret not in memory.inbox_list().proposals[0].content


def test_nothing_is_captured_over_the_disk_budget(opened: Opened, talk: Conversation) -> None:
    memory = opened(disk_budget_mb=1)
    memory.remember_many({"content": f"{number} " + "x" * 30_000} for number in range(40))
    talk.user(MESSAGE)
    captured = learn(memory, talk.event)
    assert "disk_budget_mb" in captured.problems[0]
    assert waiting(memory) == []


@pytest.fixture(scope="module")
def running_tenants() -> Iterator[ServedStores]:
    with serve_stores() as found:
        yield found


def test_server_proposals_belong_to_their_user(
    tmp_path: Path, talk: Conversation, running_tenants: ServedStores
) -> None:
    with (
        running_tenants.at(str(tmp_path / "served.db"), embedder="none") as (address, tenants),
        Trivet.open(address, key=key_of(tenants, "ana")) as ana,
        Trivet.open(address, key=key_of(tenants, "ben")) as ben,
    ):
        talk.user(MESSAGE)
        assert len(learn(ana, talk.event).proposed) == 1
        assert (waiting(ana), waiting(ben)) == ([STATEMENT], [])
        (accepted,) = ana.inbox_accept([ana.inbox_list().proposals[0].id])
        assert ana.get(str(accepted.stored)).owner == "ana"
