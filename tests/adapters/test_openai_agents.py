"""Session and tools for the OpenAI Agents SDK, tested with the SDK and its scripted model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from support.store_fixtures import Opened
from support.waiting import in_threads
from trivet import InvalidInput, Trivet

pytest.importorskip(
    "agents.testing", reason="openai-agents is not installed: `make adapters` tests it"
)

from agents import Agent, RunConfig, Runner, Session, SessionSettings
from agents.testing import ScriptedModel, assistant_message, function_call

from trivet.adapters.openai_agents import TrivetSession, memory_tools

T = TypeVar("T")
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
UNTRACED = RunConfig(tracing_disabled=True)
CONVERSATION: list[Any] = [
    {"role": "user", "content": "Which port has staging?\nAnd why?"},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "gAAAAABo" + "Zm9vYmFy" * 200,
    },
    {
        "type": "function_call",
        "call_id": "call_1",
        "name": "look",
        "arguments": '{"where": "staging", "n": 1.0}',
    },
    {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [{"type": "input_text", "text": " 6543 "}],
    },
    {
        "role": "assistant",
        "content": [{"type": "output_text", "text": "6543, 名前 \u0000 😀", "annotations": []}],
    },
    {"role": "user", "content": ""},
    {"role": "user", "content": "Which port has staging?\nAnd why?"},
]


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


@pytest.fixture
def session(trivet: Trivet) -> TrivetSession:
    return TrivetSession("ana/1", trivet)


def test_items_come_back_exactly_and_in_order(session: TrivetSession, open_trivet: Opened) -> None:
    assert isinstance(session, Session)
    assert run(session.get_items()) == []
    run(session.add_items(CONVERSATION[:3]))
    run(session.add_items([]))
    run(session.add_items(CONVERSATION[3:]))
    assert repr(run(session.get_items())) == repr(CONVERSATION)
    assert run(TrivetSession("ana/1", open_trivet()).get_items()) == CONVERSATION


def test_a_limit_gives_the_latest(session: TrivetSession, trivet: Trivet) -> None:
    run(session.add_items(CONVERSATION))
    assert run(session.get_items(2)) == CONVERSATION[-2:]
    assert run(session.get_items(0)) == []
    assert run(session.get_items(100)) == CONVERSATION
    limited = TrivetSession("ana/1", trivet, session_settings=SessionSettings(limit=3))
    assert run(limited.get_items()) == CONVERSATION[-3:]


def test_pop_takes_the_latest_and_the_next_item_follows_the_one_before(
    session: TrivetSession,
) -> None:
    run(session.add_items(CONVERSATION[:3]))
    assert run(session.pop_item()) == CONVERSATION[2]
    assert run(session.pop_item()) == CONVERSATION[1]
    run(session.add_items([CONVERSATION[3]]))
    assert run(session.get_items()) == [CONVERSATION[0], CONVERSATION[3]]
    assert [run(session.pop_item()) for _ in range(3)] == [CONVERSATION[3], CONVERSATION[0], None]


def test_sessions_are_apart(trivet: Trivet) -> None:
    sessions = [TrivetSession(name, trivet) for name in ("ana", "ana/", "ana/1", "Ana", "a na")]
    for session in sessions:
        run(session.add_items([user(session.session_id)]))
    run(sessions[0].clear_session())
    assert [run(session.get_items()) for session in sessions] == [
        [],
        *([user(session.session_id)] for session in sessions[1:]),
    ]
    run(sessions[0].add_items([user("anew")]))
    assert run(sessions[0].get_items()) == [user("anew")]


@pytest.mark.parametrize(
    "large",
    [
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": "data:image/png;base64," + "iVBORw0KGgo" * 9000,
        },
        {"role": "user", "content": 'She said "名前"\n' * 4000},
        {"role": "user", "content": "half a character: \ud800"},
        {"role": "user", "content": "<private> never closed", "id": "1"},
    ],
    ids=["image", "text", "half", "private"],
)
def test_what_no_memory_holds_as_one_is_kept_in_pieces(session: TrivetSession, large: Any) -> None:
    items = [user("before"), large, user("after")]
    run(session.add_items(items))
    assert run(session.get_items()) == items
    assert run(session.get_items(2)) == items[1:]
    assert run(session.pop_item()) == items[2]
    assert run(session.pop_item()) == large
    assert run(session.get_items()) == items[:1]


def test_pieces_that_a_killed_process_left_are_no_item(
    session: TrivetSession, trivet: Trivet
) -> None:
    run(session.add_items([user("before"), user("x " * 20_000), user("after")]))
    [last] = [
        one
        for one in trivet.list(state=("archived",)).memories
        if one.content.startswith("part: 3")
    ]
    trivet.forget(last.id)
    assert run(session.get_items()) == [user("before"), user("after")]


def test_a_secret_is_sealed_at_every_place_and_comes_back_to_the_conversation(
    session: TrivetSession, trivet: Trivet
) -> None:
    items = [user(f"The token is {TOKEN}."), user("x" * 14_950 + f" {TOKEN} " + "y" * 20_000)]
    run(session.add_items(items))
    assert run(session.get_items()) == items
    kept = trivet.list(state=("archived",)).memories
    assert sum("[secret:github-token:1]" in memory.content for memory in kept) == 2
    assert not any("ghp_" in memory.content or "q7R8" in memory.content for memory in kept)


def test_nothing_of_a_large_private_part_is_left_open(
    session: TrivetSession, trivet: Trivet
) -> None:
    items = [
        {
            "role": "user",
            "content": "<private>" + "hush " * 5000 + "</private> and " + "more " * 5000,
        }
    ]
    run(session.add_items(items))
    assert run(session.get_items()) == items
    assert not any("hush" in memory.content for memory in trivet.list(state=("archived",)).memories)


def test_what_is_no_json_is_refused_and_nothing_is_added(session: TrivetSession) -> None:
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        run(session.add_items([user("x"), {"role": "user", "content": object()}]))
    assert run(session.get_items()) == []


def test_the_name_of_a_session_is_no_secret(trivet: Trivet) -> None:
    with pytest.raises(InvalidInput, match="looks like a secret"):
        TrivetSession(TOKEN, trivet)


def test_recall_does_not_find_conversations_unless_asked(
    session: TrivetSession, trivet: Trivet
) -> None:
    run(session.add_items([user("Which port has staging?")]))
    assert not trivet.recall("Which port has staging?").hits
    [hit] = trivet.recall("Which port has staging?", state=["archived"]).hits
    assert hit.content == "role: user\ncontent: Which port has staging?"


def test_writers_at_once_lose_nothing_and_batches_stay_together(open_trivet: Opened) -> None:
    stores = [open_trivet() for _ in range(3)]

    def write(number: int) -> None:
        session = TrivetSession("shared", stores[number])
        for turn in range(4):
            run(session.add_items([user(f"{number} {turn} {part}") for part in "abc"]))

    in_threads(3, write)
    texts = [item["content"] for item in run(TrivetSession("shared", stores[0]).get_items())]
    batches = [texts[start : start + 3] for start in range(0, len(texts), 3)]
    assert all([text[:-1] for text in batch] == [batch[0][:-1]] * 3 for batch in batches)
    assert all("".join(text[-1] for text in batch) == "abc" for batch in batches)
    assert len(set(texts)) == len(texts) == 36
    for number in range(3):
        assert [text for text in texts if text[0] == str(number)] == [
            f"{number} {turn} {part}" for turn in range(4) for part in "abc"
        ]


def test_each_of_several_who_pop_gets_another_item(open_trivet: Opened) -> None:
    stores = [open_trivet() for _ in range(3)]
    run(TrivetSession("shared", stores[0]).add_items([user(str(number)) for number in range(9)]))
    popped: list[Any] = []

    def pop(number: int) -> None:
        popped.extend(run(TrivetSession("shared", stores[number]).pop_item()) for _ in range(3))

    in_threads(3, pop)
    assert sorted(item["content"] for item in popped) == [str(number) for number in range(9)]
    assert run(TrivetSession("shared", stores[0]).get_items()) == []


def test_another_process_goes_on_with_the_conversation(session: TrivetSession, path: Path) -> None:
    run(session.add_items(CONVERSATION[:2]))
    script = (
        "import asyncio, sys; from trivet import Trivet; from trivet.adapters.openai_agents import TrivetSession\n"
        "async def talk(session):\n"
        "    assert len(await session.get_items()) == 2\n"
        "    await session.add_items([{'role': 'user', 'content': 'from another process'}])\n"
        "with Trivet.open(sys.argv[1], embedder='none', background=False) as memory:\n"
        "    asyncio.run(talk(TrivetSession('ana/1', memory)))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert run(session.get_items()) == [*CONVERSATION[:2], user("from another process")]


def test_a_runner_keeps_its_conversation_there(session: TrivetSession) -> None:
    model = ScriptedModel([[assistant_message("Hello Ana.")], [assistant_message("You are Ana.")]])
    agent = Agent(name="Assistant", model=model)
    run(Runner.run(agent, "I am Ana.", session=session, run_config=UNTRACED))
    run(Runner.run(agent, "Who am I?", session=session, run_config=UNTRACED))
    assert model.last_call is not None
    told = [(item["role"], _text(item)) for item in model.last_call.input]
    assert told == [("user", "I am Ana."), ("assistant", "Hello Ana."), ("user", "Who am I?")]
    assert len(run(session.get_items())) == 4


def test_an_agent_stores_and_recalls(trivet: Trivet, session: TrivetSession) -> None:
    model = ScriptedModel(
        [
            [
                function_call(
                    "memory_store", {"content": "Staging listens on port 6543."}, call_id="1"
                )
            ],
            [
                function_call("memory_recall", {"query": "port of staging"}, call_id="2"),
                function_call("memory_recall", {"question": "port of staging"}, call_id="3"),
            ],
            [assistant_message("6543")],
        ]
    )
    agent = Agent(name="Assistant", model=model, tools=memory_tools(trivet))
    result = run(Runner.run(agent, "Which port has staging?", session=session, run_config=UNTRACED))
    assert result.final_output == "6543"
    stored, recalled, wrong, *_ = (
        item.output for item in result.new_items if item.type == "tool_call_output_item"
    )
    assert stored.startswith("Stored: ")
    assert "Staging listens on port 6543." in recalled
    assert wrong.startswith("Error: ")
    assert "question" in wrong
    assert [memory.content for memory in trivet.list().memories] == [
        "Staging listens on port 6543."
    ]


def test_tools_are_chosen_by_name(trivet: Trivet) -> None:
    assert [tool.name for tool in memory_tools(trivet, ["memory_recall"])] == ["memory_recall"]
    with pytest.raises(
        InvalidInput, match=r"unknown tools: memory_rcall\. Available: memory_store"
    ):
        memory_tools(trivet, ["memory_rcall"])


def _text(item: Any) -> str:
    content = item["content"]
    return str(content if isinstance(content, str) else content[0]["text"])
