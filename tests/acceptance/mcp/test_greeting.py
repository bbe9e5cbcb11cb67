"""What is answered before the protocol's library is loaded is what the library would answer."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.mcp_agent import command, environment
from trivet.serve.mcp.listings import listings
from trivet.serve.mcp.quick_start import VERSIONS, answer_handshake
from trivet.serve.mcp.tools import agent_tools

LISTS = ("ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list")
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def hello(version: str) -> dict[str, Any]:
    about = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}


def asked(version: str) -> list[dict[str, Any]]:
    lists = [
        {"jsonrpc": "2.0", "id": number, "method": name} for number, name in enumerate(LISTS, 2)
    ]
    return [hello(version), READY, *lists]


def said(messages: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def told(path: Path, sent: bytes) -> dict[Any, Any]:
    ended = subprocess.run(
        command(path), input=sent, capture_output=True, env=environment(path), check=True
    )
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len({answer["id"] for answer in answers}) == len(answers), "each is answered once"
    return {answer["id"]: answer.get("result") for answer in answers}


def greeted(sent: bytes) -> dict[Any, Any]:
    """What is answered before the library is there."""
    written: list[bytes] = []
    assert (
        answer_handshake(io.BytesIO(sent), written.append, listings(agent_tools(), code=True))
        is None
    )
    return {answer["id"]: answer["result"] for answer in map(json.loads, written)}


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_it_answers_as_the_library_does(tmp_path: Path, version: str) -> None:
    assert version in VERSIONS
    at_once = greeted(said(asked(version)))
    by_library = told(tmp_path / "m.db", b"not a message\n" + said(asked(version)))
    assert by_library.pop(None) is None
    assert at_once == by_library
    assert len(at_once) == 1 + len(LISTS)


def test_what_comes_after_is_the_librarys(tmp_path: Path) -> None:
    """The process greets as above; the call is answered by the library, and the introduction once."""
    call = {
        "jsonrpc": "2.0",
        "id": 50,
        "method": "tools/call",
        "params": {"name": "memory_stats", "arguments": {}},
    }
    messages = asked("2025-06-18")
    answers = told(tmp_path / "m.db", said([*messages, call, {**call, "id": "1"}]))
    assert set(answers) == {1, 2, 3, 4, 5, 6, 50, "1"}
    assert {id: answers[id] for id in range(1, 7)} == greeted(said(messages))
    assert (
        answers[50]["structuredContent"]["links"] == answers["1"]["structuredContent"]["links"] == 0
    )


def test_the_greeting_loads_nothing_of_the_library() -> None:
    program = "import sys, trivet.serve.mcp.quick_start; print([name for name in sys.modules if name.startswith('mcp')])"
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=True
        ).stdout.strip()
        == b"[]"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {"cursor": "2"}},
        {"jsonrpc": "2.0", "id": 9, "method": "tools/call"},
        {"jsonrpc": "1.0", "id": 9, "method": "ping"},
        {"jsonrpc": "2.0", "method": "ping"},
        hello("2025-06-18"),
    ],
)
def test_anything_else_is_handed_on(other: dict[str, Any]) -> None:
    written: list[bytes] = []
    stream = io.BytesIO(said([hello("2025-06-18"), READY, other, READY]))
    greeted = answer_handshake(stream, written.append, listings(agent_tools()))
    assert greeted is not None
    assert (b"".join(greeted.lines), greeted.answered) == (
        said([hello("2025-06-18"), READY, other]),
        1,
    )
    assert (len(written), stream.read()) == (1, said([READY]))


@pytest.mark.parametrize(
    "first", [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, hello("2099-01-01")]
)
def test_a_stranger_is_left_to_the_library(first: dict[str, Any]) -> None:
    written: list[bytes] = []
    greeted = answer_handshake(io.BytesIO(said([first])), written.append, {"tools/list": {}})
    assert greeted is not None
    assert written == []
    assert (greeted.lines, greeted.answered) == ((said([first]),), None)
