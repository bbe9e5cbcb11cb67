"""Capture with a language model: what it is sent, may propose, and costs."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from support.chat_server import ChatServer, chat_server
from support.conversations import Conversation
from support.invented_secrets import github
from support.store_fixtures import Opened
from support.waiting import ended, happened
from trivet import InvalidInput, Trivet
from trivet.agents.capture import curate, learn, read_waiting
from trivet.agents.capture.learn import start_in_background
from trivet.types import Caller

MESSAGE = "Our tests talk to a real database, since mocks lied to us twice."
CONTENT = "Tests use a real database because mocks gave wrong results twice."


def picks(*items: dict[str, Any]) -> str:
    return json.dumps({"items": list(items)})


def item(
    content: str = CONTENT, quote: str = "mocks lied to us twice", kind: str = "decision"
) -> dict[str, Any]:
    return {"content": content, "quote": quote, "kind": kind}


def says(text: str | int | None) -> Any:
    return chat_server(lambda question: text)


def sent_text(server: ChatServer) -> str:
    return "\n".join(server.bodies)


def test_selection_is_proposed_with_the_users_words(opened: Opened, talk: Conversation) -> None:
    with says(picks(item())) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(MESSAGE)
        assert learn(memory, talk.event).proposed == (), "the rules must find nothing"
        asked = read_waiting(memory)
        (found,) = memory.inbox_list().proposals
        assert (asked.conversations, asked.proposed, found.content, found.kind) == (
            1,
            1,
            CONTENT,
            "decision",
        )
        assert "mocks lied to us twice" in found.reason
        assert read_waiting(memory).conversations == 0, "each conversation is read once"
        assert len(server.bodies) == 1


def test_missing_quote_is_accepted_for_a_literal_sentence(
    opened: Opened, talk: Conversation
) -> None:
    with says(picks({"content": MESSAGE, "kind": "decision"})) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(MESSAGE)
        learn(memory, talk.event)
        assert read_waiting(memory).proposed == 1


def test_invented_statements_are_dropped(opened: Opened, talk: Conversation) -> None:
    answer = picks(
        item(quote="the user never said so"),
        {"content": 7},
        item(kind="gossip"),
        item(content="x" * 9_000),
    )
    with says(answer) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(MESSAGE)
        learn(memory, talk.event)
        assert (read_waiting(memory).dropped, memory.inbox_list().total) == (4, 0)


def test_only_the_users_own_words_are_sent(opened: Opened, talk: Conversation) -> None:
    secret = github("model")
    with says(picks()) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(f"{MESSAGE} The token is {secret}. <private>I am ill.</private>")
        talk.user('<memory-data nonce="1">\nstored words\n</memory-data nonce="1">\nGo on.')
        talk.tool("the output of a tool").agent("the words of the agent")
        learn(memory, talk.event)
        read_waiting(memory)
        sent = sent_text(server)
        assert "mocks lied" in sent
        for hidden in (
            secret,
            secret[10:20],
            "I am ill",
            "stored words",
            "output of a tool",
            "words of the agent",
        ):
            assert hidden not in sent, hidden


def test_budget_is_enforced_and_counted(opened: Opened, talk: Conversation) -> None:
    with says(picks(item())) as server:
        memory = opened(capture_llm=server.spec, capture_llm_tokens_a_day=100)
        talk.user(MESSAGE)
        learn(memory, talk.event)
        asked = read_waiting(memory)
        assert (asked.proposed, server.bodies) == (0, [])
        assert "used up" in asked.problems[0]
        richer = opened(capture_llm=server.spec, capture_llm_tokens_a_day=50_000)
        assert read_waiting(richer).proposed == 1, "pending text is read once the budget allows"
        spent = next(one for one in richer.budgets() if one.name == "language model for capture")
        assert 1_000 < spent.used < 50_000


def test_endpoint_failure_is_retried_later(opened: Opened, talk: Conversation) -> None:
    answers: list[Any] = [500, picks(item())]
    with chat_server(lambda question: answers[0]) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(MESSAGE)
        learn(memory, talk.event)
        assert "capture_llm" in read_waiting(memory).problems[0]
        answers.pop(0)
        assert read_waiting(memory).proposed == 1


def test_useless_answer_is_reported_once(opened: Opened, talk: Conversation) -> None:
    with says("I would rather talk about the weather.") as server:
        memory = opened(capture_llm=server.spec)
        talk.user(MESSAGE)
        learn(memory, talk.event)
        assert len(read_waiting(memory).problems) == 1
        assert read_waiting(memory).problems == ()
        assert len(server.bodies) == 1


def test_missing_transcript_is_reported_once(opened: Opened, talk: Conversation) -> None:
    with says(picks()) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(MESSAGE)
        learn(memory, talk.event)
        talk.path.unlink()
        assert "cannot be read" in read_waiting(memory).problems[0]
        assert read_waiting(memory).problems == ()


def test_missing_model_names_the_setting(memory: Trivet) -> None:
    for act in (read_waiting, curate):
        with pytest.raises(InvalidInput, match="capture_llm"):
            act(memory)


def test_hook_does_not_wait_for_the_model(opened: Opened, talk: Conversation) -> None:
    release = threading.Event()

    def answer(question: Any) -> str:
        happened(release)
        return picks(item())

    with chat_server(answer) as server:
        memory = opened(capture_llm=server.spec, background=True)
        talk.user(MESSAGE)
        assert learn(memory, talk.event).problems == ()
        happened(server.asked)
        assert memory.inbox_list().total == 0
        assert start_in_background(memory) is None, "one at a time"
        release.set()
        for thread in threading.enumerate():
            if thread.name == "trivet-capture":
                ended(thread)
        assert memory.inbox_list().total == 1


def curated(opened: Opened, answer: Any) -> tuple[Trivet, str, str, list[str]]:
    """Curate one proposal in a store with a similar memory and a sensitive one."""
    with chat_server(lambda question: json.dumps(answer(question))) as server:
        memory = opened(capture_llm=server.spec)
        old = memory.remember("The relay listens on port 7001.").id
        memory.remember("The relay's owner is in hospital.", sensitive=True)
        id = str(memory.inbox_propose("The relay has listened on port 7002 since May.").id)
        curate(memory)
        assert curate(memory).curated == 0, "each proposal is curated once"
        return memory, id, old, server.bodies


def test_echoed_memory_does_not_replace_the_proposal(
    opened: Opened,
) -> None:
    memory, id, _, _ = curated(
        opened, lambda question: {"action": "add", "content": question["stored"][0]["content"]}
    )
    assert memory.inbox_show(id).content == "The relay has listened on port 7002 since May."


@pytest.mark.parametrize("action", ["update", "supersede"])
def test_curation_only_changes_the_proposal(opened: Opened, action: str) -> None:
    def answer(question: Any) -> dict[str, Any]:
        (stored,) = question["stored"]
        return {
            "action": action,
            "id": stored["id"],
            "content": "The relay listens on port 7002.",
            "reason": "moved",
        }

    memory, id, old, bodies = curated(opened, answer)
    found = memory.inbox_show(id)
    assert (found.action, found.memory, found.content) == (
        action,
        old,
        "The relay listens on port 7002.",
    )
    assert "moved" in found.reason
    assert memory.get(old).content == "The relay listens on port 7001."
    assert "hospital" not in "".join(bodies)
    memory.inbox_accept([id])
    versions = [revision.memory.content for revision in memory.history(old)]
    assert versions[0] == "The relay listens on port 7001.", "the old version stays"
    assert memory.get(old).state == ("superseded" if action == "supersede" else "active")


def test_curation_may_advise_against_a_proposal(opened: Opened) -> None:
    memory, id, _, _ = curated(opened, lambda question: {"action": "nothing", "reason": "known"})
    assert (memory.inbox_show(id).action, memory.inbox_list().total) == ("nothing", 1)


@pytest.mark.parametrize(
    "answer",
    [
        {
            "action": "update",
            "id": "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b",
            "content": "Taken over.",
        },
        {"action": "delete", "id": None},
        {"action": "supersede", "id": None},
        {"action": "add", "content": "x" * 10_000},
        ["add"],
    ],
)
def test_invalid_curation_changes_nothing(opened: Opened, answer: Any) -> None:
    memory, id, _, _ = curated(opened, lambda question: answer)
    found = memory.inbox_show(id)
    assert found.content == "The relay has listened on port 7002 since May."
    assert found.action in ("add", "supersede")


def test_curation_hides_secrets_and_other_users_memories(opened: Opened) -> None:
    """A server's store has many users and may hold secrets from before masking was on."""
    secret = github("stored")
    with says(json.dumps({"action": "add", "id": None, "content": "x", "reason": "new"})) as server:
        before = opened(secrets="off")
        ana, bea = (
            before.acting_as(
                Caller(
                    tenant="default",
                    user=name,
                    role="writer",
                    key="k",
                    rights=frozenset(("read", "write")),
                )
            )
            for name in ("ana", "bea")
        )
        ana.remember(f"The staging database of the shop has the token {secret}.")
        bea.remember("The staging database of the shop is Bea's alone.")
        ana.inbox_propose("The staging database of the shop runs on port 6543.")
        curate(opened(capture_llm=server.spec))
        sent = sent_text(server)
        assert "has the token" in sent
        assert secret not in sent
        assert "Bea" not in sent
