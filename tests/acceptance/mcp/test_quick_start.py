"""Answers before the MCP library is loaded equal the library's answers."""

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


def handshake(version: str) -> list[dict[str, Any]]:
    lists = [
        {"jsonrpc": "2.0", "id": number, "method": name} for number, name in enumerate(LISTS, 2)
    ]
    return [hello(version), READY, *lists]


def encoded(messages: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def answers_of_process(path: Path, sent: bytes) -> dict[Any, Any]:
    ended = subprocess.run(
        command(path), input=sent, capture_output=True, env=environment(path), check=True
    )
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len({answer["id"] for answer in answers}) == len(answers), "each message gets one answer"
    return {answer["id"]: answer.get("result") for answer in answers}


def quick_answers(sent: bytes) -> dict[Any, Any]:
    """Return what is answered before the library is loaded."""
    written: list[bytes] = []
    assert (
        answer_handshake(io.BytesIO(sent), written.append, listings(agent_tools(), code=True))
        is None
    )
    return {answer["id"]: answer["result"] for answer in map(json.loads, written)}


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_quick_answers_match_the_library(tmp_path: Path, version: str) -> None:
    assert version in VERSIONS
    at_once = quick_answers(encoded(handshake(version)))
    by_library = answers_of_process(
        tmp_path / "m.db", b"not a message\n" + encoded(handshake(version))
    )
    assert by_library.pop(None) is None
    assert at_once == by_library
    assert len(at_once) == 1 + len(LISTS)


def test_later_messages_go_to_the_library(tmp_path: Path) -> None:
    """The process greets as above; the library answers the call, and the greeting only once."""
    call = {
        "jsonrpc": "2.0",
        "id": 50,
        "method": "tools/call",
        "params": {"name": "memory_stats", "arguments": {}},
    }
    messages = handshake("2025-06-18")
    answers = answers_of_process(tmp_path / "m.db", encoded([*messages, call, {**call, "id": "1"}]))
    assert set(answers) == {1, 2, 3, 4, 5, 6, 50, "1"}
    assert {id: answers[id] for id in range(1, 7)} == quick_answers(encoded(messages))
    assert (
        answers[50]["structuredContent"]["links"] == answers["1"]["structuredContent"]["links"] == 0
    )


def test_greeting_does_not_load_the_library() -> None:
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
def test_other_messages_are_handed_on(other: dict[str, Any]) -> None:
    written: list[bytes] = []
    stream = io.BytesIO(encoded([hello("2025-06-18"), READY, other, READY]))
    greeted = answer_handshake(stream, written.append, listings(agent_tools()))
    assert greeted is not None
    assert (b"".join(greeted.lines), greeted.answered) == (
        encoded([hello("2025-06-18"), READY, other]),
        1,
    )
    assert (len(written), stream.read()) == (1, encoded([READY]))


@pytest.mark.parametrize(
    "first", [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, hello("2099-01-01")]
)
def test_unknown_handshake_is_left_to_the_library(first: dict[str, Any]) -> None:
    written: list[bytes] = []
    greeted = answer_handshake(io.BytesIO(encoded([first])), written.append, {"tools/list": {}})
    assert greeted is not None
    assert written == []
    assert (greeted.lines, greeted.answered) == ((encoded([first]),), None)
