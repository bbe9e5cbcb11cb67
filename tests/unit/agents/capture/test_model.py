"""With a language model: what it is shown, what it may propose, what it costs. The server is real, its wits are not."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from support.chat_server import ChatServer, chat_server
from support.conversations import Conversation
from support.invented_secrets import github
from support.opened import Opened
from support.waiting import ended, happened
from trivet import InvalidInput, Trivet
from trivet.agents.capture import curate, learn, read_waiting
from trivet.agents.capture.learn import start_in_background
from trivet.types import Caller

SAID = "Our tests talk to a real database, since mocks lied to us twice."
CONTENT = "Tests use a real database because mocks gave wrong results twice."


def picks(*items: dict[str, Any]) -> str:
    return json.dumps({"items": list(items)})


def item(
    content: str = CONTENT, quote: str = "mocks lied to us twice", kind: str = "decision"
) -> dict[str, Any]:
    return {"content": content, "quote": quote, "kind": kind}


def says(text: str | int | None) -> Any:
    return chat_server(lambda question: text)


def heard(server: ChatServer) -> str:
    return "\n".join(server.bodies)


def test_what_it_picks_is_proposed_with_the_users_words(opened: Opened, talk: Conversation) -> None:
    with says(picks(item())) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(SAID)
        assert learn(memory, talk.event).proposed == (), "the rules see nothing in it"
        asked = read_waiting(memory)
        (found,) = memory.inbox_list().proposals
        assert (asked.conversations, asked.proposed, found.content, found.kind) == (
            1,
            1,
            CONTENT,
            "decision",
        )
        assert "mocks lied to us twice" in found.reason
        assert read_waiting(memory).conversations == 0, "a conversation is read once"
        assert len(server.bodies) == 1


def test_a_small_model_that_gives_the_users_own_sentence_and_no_quote_is_understood(
    opened: Opened, talk: Conversation
) -> None:
    with says(picks({"content": SAID, "kind": "decision"})) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(SAID)
        learn(memory, talk.event)
        assert read_waiting(memory).proposed == 1


def test_what_nobody_said_is_dropped(opened: Opened, talk: Conversation) -> None:
    answer = picks(
        item(quote="the user never said so"),
        {"content": 7},
        item(kind="gossip"),
        item(content="x" * 9_000),
    )
    with says(answer) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(SAID)
        learn(memory, talk.event)
        assert (read_waiting(memory).dropped, memory.inbox_list().total) == (4, 0)


def test_it_is_shown_the_users_own_words_alone(opened: Opened, talk: Conversation) -> None:
    secret = github("model")
    with says(picks()) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(f"{SAID} The token is {secret}. <private>I am ill.</private>")
        talk.user('<memory-data nonce="1">\nstored words\n</memory-data nonce="1">\nGo on.')
        talk.tool("the output of a tool").agent("the words of the agent")
        learn(memory, talk.event)
        read_waiting(memory)
        sent = heard(server)
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


def test_the_budget_holds_and_is_counted(opened: Opened, talk: Conversation) -> None:
    with says(picks(item())) as server:
        memory = opened(capture_llm=server.spec, capture_llm_tokens_a_day=100)
        talk.user(SAID)
        learn(memory, talk.event)
        asked = read_waiting(memory)
        assert (asked.proposed, server.bodies) == (0, [])
        assert "used up" in asked.problems[0]
        richer = opened(capture_llm=server.spec, capture_llm_tokens_a_day=50_000)
        assert read_waiting(richer).proposed == 1, "what waited is read when there is a budget"
        spent = next(one for one in richer.budgets() if one.name == "language model for capture")
        assert 1_000 < spent.used < 50_000


def test_an_endpoint_that_is_down_costs_nothing_but_time(
    opened: Opened, talk: Conversation
) -> None:
    answers: list[Any] = [500, picks(item())]
    with chat_server(lambda question: answers[0]) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(SAID)
        learn(memory, talk.event)
        assert "capture_llm" in read_waiting(memory).problems[0]
        answers.pop(0)
        assert read_waiting(memory).proposed == 1


def test_a_useless_answer_is_told_and_not_asked_for_again(
    opened: Opened, talk: Conversation
) -> None:
    with says("I would rather talk about the weather.") as server:
        memory = opened(capture_llm=server.spec)
        talk.user(SAID)
        learn(memory, talk.event)
        assert len(read_waiting(memory).problems) == 1
        assert read_waiting(memory).problems == ()
        assert len(server.bodies) == 1


def test_a_transcript_that_is_gone_is_let_go(opened: Opened, talk: Conversation) -> None:
    with says(picks()) as server:
        memory = opened(capture_llm=server.spec)
        talk.user(SAID)
        learn(memory, talk.event)
        talk.path.unlink()
        assert "cannot be read" in read_waiting(memory).problems[0]
        assert read_waiting(memory).problems == ()


def test_without_a_model_it_says_what_to_set(memory: Trivet) -> None:
    for act in (read_waiting, curate):
        with pytest.raises(InvalidInput, match="capture_llm"):
            act(memory)


def test_a_hook_does_not_wait_for_it(opened: Opened, talk: Conversation) -> None:
    let = threading.Event()

    def answer(question: Any) -> str:
        happened(let)
        return picks(item())

    with chat_server(answer) as server:
        memory = opened(capture_llm=server.spec, background=True)
        talk.user(SAID)
        assert learn(memory, talk.event).problems == ()
        happened(server.asked)
        assert memory.inbox_list().total == 0
        assert start_in_background(memory) is None, "one at a time"
        let.set()
        for thread in threading.enumerate():
            if thread.name == "trivet-capture":
                ended(thread)
        assert memory.inbox_list().total == 1


def curated(opened: Opened, answer: Any) -> tuple[Trivet, str, str, list[str]]:
    """A proposal beside a stored memory and a sensitive one, after the model has looked at it."""
    with chat_server(lambda question: json.dumps(answer(question))) as server:
        memory = opened(capture_llm=server.spec)
        old = memory.remember("The relay listens on port 7001.").id
        memory.remember("The relay's owner is in hospital.", sensitive=True)
        id = str(memory.inbox_propose("The relay has listened on port 7002 since May.").id)
        curate(memory)
        assert curate(memory).curated == 0, "each is looked at once"
        return memory, id, old, server.bodies


def test_a_small_model_that_gives_the_stored_memory_back_does_not_lose_what_was_proposed(
    opened: Opened,
) -> None:
    memory, id, _, _ = curated(
        opened, lambda question: {"action": "add", "content": question["stored"][0]["content"]}
    )
    assert memory.inbox_show(id).content == "The relay has listened on port 7002 since May."


@pytest.mark.parametrize("action", ["update", "supersede"])
def test_curation_proposes_and_stores_nothing(opened: Opened, action: str) -> None:
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


def test_curation_may_advise_against_it(opened: Opened) -> None:
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
def test_a_curation_that_makes_no_sense_changes_nothing(opened: Opened, answer: Any) -> None:
    memory, id, _, _ = curated(opened, lambda question: answer)
    found = memory.inbox_show(id)
    assert found.content == "The relay has listened on port 7002 since May."
    assert found.action in ("add", "supersede")


def test_curation_shows_neither_secrets_nor_what_is_somebody_elses(opened: Opened) -> None:
    """The store of a server has many users, and one that was filled before the guard was there may hold anything."""
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
        sent = heard(server)
        assert "has the token" in sent
        assert secret not in sent
        assert "Bea" not in sent
