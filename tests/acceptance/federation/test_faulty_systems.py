"""A system that lies, sends garbage or dies loses only its own hits, and the answer reports it."""

from __future__ import annotations

from typing import Any

from .conftest import Opened
from .systems import PATIENT_MS, health_of, printing, program, saying

USELESS = {
    "no JSON": saying("<html>Not found</html>"),
    "half a JSON": saying('{"hits": [{"id": "a"}'),
    "nothing": saying(""),
    "deep nesting": saying("[" * 200_000),
    "no hits": printing({"error": "index is being built"}),
    "hits of a wrong type": printing({"hits": {"id": "a"}}),
    "a number": printing(7),
    "dies": {"command": program("import os; os.kill(os.getpid(), 9)"), "time_limit_ms": PATIENT_MS},
    "hangs": {"command": program("import time; time.sleep(1000)"), "time_limit_ms": 300},
}


def test_unusable_answers(federation: Opened) -> None:
    liars = {lie.replace(" ", "-").lower(): member for lie, member in USELESS.items()}
    memory = federation(**liars, honest=printing([{"id": "honest.md", "score": 1}]))
    for content in (
        "The key is under the mat.",
        "The key of the shed is blue.",
        "The mat is green.",
    ):
        memory.remember(content)
    plain = memory.recall("key mat")
    answer = memory.recall("key mat", federated=True)
    assert [hit.id for hit in answer.hits] == [hit.id for hit in plain.hits]
    assert [(hit.id, hit.systems) for hit in answer.foreign] == [("honest.md", ("honest",))]
    assert answer.health.degraded
    for name in liars:
        health = health_of(answer, name)
        assert not health.answered, name
        assert "1 of 1 times" in (health.reason or ""), name
        assert len(health.reason or "") < 400, name


def test_without_systems_the_answer_is_a_plain_recall(federation: Opened) -> None:
    memory = federation(liar=USELESS["no JSON"])
    for number in range(8):
        memory.remember(f"Key number {number} opens door {number % 3}.")
    plain, answer = memory.recall("key 2 door"), memory.recall("key 2 door", federated=True)
    assert [(hit.id, hit.score, hit.rank) for hit in answer.hits] == [
        (hit.id, hit.score, hit.rank) for hit in plain.hits
    ]


BAD: dict[str, Any] = {
    "no id": {"score": 1},
    "null id": {"id": None, "score": 1},
    "a list for an id": {"id": ["a"], "score": 1},
    "a long id": {"id": "x" * 5000, "score": 1},
    "an id of two lines": {"id": "a\nb", "score": 1},
    "true for an id": {"id": True, "score": 1},
    "an id of nothing": {"id": "./", "score": 1},
    "a hidden control": {"id": "file:///a%1b[31m", "score": 1},
    "an endless number": {"id": 10**3000, "score": 1},
    "NaN": {"id": "nan", "score": float("nan")},
    "infinity": {"id": "inf", "score": float("inf")},
    "a huge number": {"id": "huge", "score": 10**400},
    "a score in words": {"id": "words", "score": "0.9"},
    "true for a score": {"id": "true", "score": True},
    "a text": "",
    "null": None,
}


def test_bad_hit_drops_only_itself(federation: Opened) -> None:
    liars = {
        lie.replace(" ", "-").lower(): printing(
            {"hits": [{"id": "good", "score": 0.5}, bad, {"id": "better", "score": 1}]}
        )
        for lie, bad in BAD.items()
    }
    answer = federation(**liars).recall("x", federated=True)
    assert [hit.id for hit in answer.foreign] == ["better", "good"]
    for name in liars:
        assert any(note.startswith(f"{name}: 1 of its hits") for note in answer.health.notes), name
        assert [hit.legs[name].rank for hit in answer.foreign] == [1, 2], name
    assert all(0 <= hit.score <= 1 for hit in answer.foreign)


def test_repeated_id_counts_once(federation: Opened) -> None:
    hits = [
        {"id": "a", "score": 1},
        {"id": "b", "score": 3},
        {"id": "a", "score": 2},
        {"id": "./b", "score": 3},
    ]
    answer = federation(liar=printing(hits)).recall("x", federated=True)
    assert [(hit.id, hit.legs["liar"].score) for hit in answer.foreign] == [("b", 3.0), ("a", 2.0)]
    assert "liar: 2 of its hits with a repeated id" in answer.health.notes


def test_huge_text_and_terminal_control_characters(federation: Opened) -> None:
    text = "\x1b[31mred\x07\u009b " + "long " * 200_000
    hits = [
        {"id": "a", "text": text, "title": "t\x1b]0;x" + "y" * 5000, "line": -3},
        {"id": "b", "text": ["no text"]},
    ]
    first, second = federation(liar=printing(hits)).recall("x", federated=True).foreign
    assert first.text.startswith("[31mred long")
    assert len(first.text) <= 2000
    assert len(first.title or "") <= 300
    assert "\x1b" not in first.text + (first.title or "")
    assert (first.line, second.text) == (None, "")


def test_lone_surrogates_are_dropped(federation: Opened) -> None:
    reply = r'{"hits": [{"id": "a", "text": "\ud800 half"}, {"id": "\ud800"}]}'
    answer = federation(liar=saying(reply)).recall("x", federated=True)
    assert [(hit.id, hit.text) for hit in answer.foreign] == [("a", "? half")]


def test_ten_thousand_hits_are_cut_to_the_best(federation: Opened) -> None:
    hits = [{"id": f"d{number}", "score": number} for number in range(10_000)]
    answer = federation(liar=printing(hits, fetch_k=20)).recall("x", federated=True, limit=100)
    assert [hit.id for hit in answer.foreign] == [
        f"d{number}" for number in range(9_999, 9_979, -1)
    ]


def test_list_without_scores_is_ranked_by_position(federation: Opened) -> None:
    memory = federation(ranked=printing([{"id": "c"}, {"id": "a"}, {"id": "b"}]))
    answer = memory.recall("x", federated=True)
    assert [hit.id for hit in answer.foreign] == ["c", "a", "b"]
    assert [hit.legs["ranked"].score for hit in answer.foreign] == [10 / 11, 10 / 12, 10 / 13]
    partly = printing([{"id": "c"}, {"id": "a", "score": 9}])
    assert [hit.id for hit in federation(partly=partly).recall("x", federated=True).foreign] == [
        "c",
        "a",
    ]


def test_distances_and_floors(federation: Opened) -> None:
    near = printing(
        [{"id": "far", "score": 0.9}, {"id": "near", "score": 0.1}], lower_is_better=True
    )
    above = printing([{"id": "in", "score": -0.5}, {"id": "out", "score": -2}], floor=-1)
    answer = federation(near=near, above=above).recall("x", federated=True)
    ranks = {
        hit.id: next(iter(part.rank for part in hit.legs.values() if part.rank))
        for hit in answer.foreign
    }
    assert ranks == {"near": 1, "far": 2, "in": 1}
    assert "above: 1 of its hits with a score below the floor of -1" in answer.health.notes
