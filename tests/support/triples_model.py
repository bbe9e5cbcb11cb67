"""A model that reads triples as well or badly as a test wants, behind a real server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.chat_server import Answer, ChatServer, chat_server

Statement = Mapping[str, Any]
serving = chat_server


Held = Callable[[], list[tuple[str, str, str, str, str | None]]]


@pytest.fixture
def held(path: Path) -> Held:
    """Return the facts: subject, relation, object, and their first and last days."""

    def read() -> list[tuple[str, str, str, str, str | None]]:
        connection = sqlite3.connect(path)
        rows = connection.execute(
            "SELECT s.name, h.relation, t.name, substr(h.valid_from, 1, 10), substr(h.valid_to, 1, 10) FROM held AS h "
            "JOIN concept AS s ON s.concept = h.source JOIN concept AS t ON t.concept = h.target "
            "ORDER BY h.valid_from, s.name, h.relation, t.name, h.valid_to"
        ).fetchall()
        connection.close()
        return rows

    return read


def texts_of(server: ChatServer) -> list[str]:
    """Return the text of every memory that arrived, in order."""
    questions = [json.loads(json.loads(body)["messages"][1]["content"]) for body in server.bodies]
    return [memory["text"] for question in questions for memory in question.get("memories", [])]


def knows(statements: Mapping[str, Sequence[Statement]], same: bool = False) -> Answer:
    """Return a model that finds these statements in texts that hold the key.

    `same` is its answer for every pair of names.
    """

    def answer(question: Any) -> str:
        if "pairs" in question:
            return json.dumps(
                {"same": [pair["number"] for pair in question["pairs"]] if same else []}
            )
        entries = [
            {
                "number": memory["number"],
                "triples": [
                    one for key in statements if key in memory["text"] for one in statements[key]
                ],
            }
            for memory in question.get("memories", [])
        ]
        return json.dumps({"memories": entries})

    return answer


def states(subject: str, relation: str, object: str, **more: Any) -> Statement:
    return {"subject": subject, "relation": relation, "object": object, **more}
