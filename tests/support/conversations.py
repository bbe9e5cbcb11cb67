"""Transcripts in the formats of Claude Code and Codex that grow turn by turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec


class Conversation:
    """A Claude Code session with the event of its stop hook."""

    def __init__(self, folder: Path, session: str = "5f1c0b1e-9d7a-4c55-8a3e-2d1f60c0ffee") -> None:
        self.path = folder / f"{session}.jsonl"
        self.session = session
        self._events = 0

    @property
    def event(self) -> dict[str, Any]:
        return {
            "session_id": self.session,
            "transcript_path": str(self.path),
            "cwd": "/home/ana/work/shop",
            "hook_event_name": "Stop",
            "stop_hook_active": False,
        }

    def user(self, text: str | list[Any], **more: Any) -> Conversation:
        return self._add("user", {"role": "user", "content": text}, more)

    def agent(self, text: str) -> Conversation:
        return self._add(
            "assistant", {"role": "assistant", "content": [{"type": "text", "text": text}]}, {}
        )

    def tool(self, output: str) -> Conversation:
        block = {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [{"type": "text", "text": output}],
        }
        return self.user([block], toolUseResult={"stdout": output})

    def raw(self, line: str) -> Conversation:
        with self.path.open("a") as file:
            file.write(line)
        return self

    def _add(self, kind: str, message: Any, more: dict[str, Any]) -> Conversation:
        self._events += 1
        event = {
            "type": kind,
            "sessionId": self.session,
            "uuid": f"event-{self._events}",
            "timestamp": "2026-05-01T10:00:00.000Z",
            "message": message,
            **more,
        }
        return self.raw(json.dumps(event) + "\n")


class Case(msgspec.Struct, frozen=True):
    """A user message and the kind of what is worth keeping in it, or none."""

    text: str
    half: str
    kind: str | None = None


def cases(half: str) -> list[Case]:
    rows = (Path(__file__).parent / "capture_cases.jsonl").read_text(encoding="utf-8").splitlines()
    every = [msgspec.json.decode(row, type=Case) for row in rows]
    return [case for case in every if case.half == half]
