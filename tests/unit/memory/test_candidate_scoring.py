"""Recall reads only memories that can rank and returns the same hits as a full read."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from support.store_fixtures import Opened
from trivet import Trivet
from trivet.memory.answer.weigh import EXTRA_CANDIDATES, CandidateScoring
from trivet.types import Answer, Fused, Memory

SUBJECTS = (
    "relay",
    "gate",
    "lock",
    "harbour",
    "staging database",
    "night train",
    "greenhouse",
    "print queue",
)
PREDICATES = (
    "listens on port",
    "was moved to",
    "belongs to",
    "is repaired by",
    "is closed on",
    "costs",
)
QUESTIONS: Sequence[tuple[str, dict[str, Any]]] = (
    ("which port does the staging database listen on", {}),
    ("the relay listens on port 12", {}),
    ('"is closed on" gate', {}),
    ("LOCK_7", {"limit": 3}),
    ("Night train", {"limit": 1}),
    ("what did we decide about the greenhouse last week", {}),
    ("greenhouse in March 2026", {"limit": 5}),
    ("harbour", {"recipe": "legs(lexical) | bonus(0.2)"}),
    ("print queue costs", {"recipe": "prior(0) | bonus(0)"}),
    ("what belongs to the relay", {"minimum_score": 0.4}),
)


@pytest.fixture
def filled(trivet: Trivet) -> Trivet:
    rng = random.Random(5)
    trivet.remember_many(_memory(rng, number) for number in range(120))
    trivet.drain()
    return trivet


def _memory(rng: random.Random, number: int) -> dict[str, Any]:
    subject = rng.choice(SUBJECTS)
    return {
        "content": f"The {subject} {rng.choice(PREDICATES)} {number}. See LOCK_{number % 9}.",
        "title": subject.capitalize() if rng.random() < 0.2 else None,
        "importance": rng.choice((0.0, 0.5, 0.5, 0.5, 0.9, 1.0)),
        "created_at": f"2026-0{rng.randint(1, 9)}-{rng.randint(10, 28)}",
    }


def summary(answer: Answer) -> list[tuple[Any, ...]]:
    return [(hit.id, hit.score, hit.why.bonus, hit.why.time, hit.relevance) for hit in answer.hits]


def test_hits_equal_those_of_a_full_read(filled: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    partial_read = [
        summary(filled.recall(query, relevance_at_least=0, **options))
        for query, options in QUESTIONS
    ]
    monkeypatch.setattr(CandidateScoring, "_possible", _all_candidates)
    full_read = [
        summary(filled.recall(query, relevance_at_least=0, **options))
        for query, options in QUESTIONS
    ]
    assert partial_read == full_read
    assert all(full_read)


def _all_candidates(scoring: CandidateScoring, wanted: int) -> Sequence[Fused]:
    return scoring._fused


def test_few_more_memories_are_read_than_shown(
    filled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = filled.engine.store.memories
    read: list[str] = []
    get_many = memories.get_many

    def counted(ids: Sequence[str]) -> dict[str, Memory]:
        read.extend(ids)
        return get_many(ids)

    monkeypatch.setattr(memories, "get_many", counted)
    answer = filled.recall("which port does the staging database listen on", limit=3, rerank="off")
    assert answer.considered > 2 * (3 + EXTRA_CANDIDATES)
    assert set(read) >= {hit.id for hit in answer.hits}
    assert len(read) <= 2 * (3 + EXTRA_CANDIDATES)


def test_important_memory_is_read_at_any_rank(trivet: Trivet) -> None:
    ids = [
        trivet.remember(f"The relay is in room {number}.", importance=0.0).id
        for number in range(40)
    ]
    trivet.edit(ids[17], importance=1.0)
    trivet.edit(ids[33], importance=1.0)
    trivet.drain()
    hits = trivet.recall(
        "in which room is the relay", limit=2, rerank="off", relevance_at_least=0
    ).hits
    assert {hit.id for hit in hits} == {ids[17], ids[33]}


def test_why_not_reports_too_low_importance_to_be_read(trivet: Trivet) -> None:
    for number in range(40):
        trivet.remember(f"The relay is in room {number}.", importance=0.9)
    low = trivet.remember("The green relay is in no room.", importance=0.0).id
    why = trivet.why_not("in which room is the relay", low, limit=2)
    assert not why.returned
    assert why.verdict.endswith("of 41 after fusion, too low to be read with an importance of 0.")


@pytest.mark.parametrize("column", ["importance", "length"])
def test_damaged_number_does_not_affect_other_memories(open_trivet: Opened, column: str) -> None:
    trivet = open_trivet(embedder="none")
    damaged = trivet.remember("The relay is in room 1.").id
    whole = trivet.remember("The relay is in room 2.").id
    trivet.close()
    with closing(sqlite3.connect(trivet.settings.path)) as connection, connection:
        connection.execute(f"UPDATE memory SET {column} = 'much' WHERE id = ?", (damaged,))
    hits = open_trivet(embedder="none").recall("in which room is the relay").hits
    assert whole in {hit.id for hit in hits}


def test_purged_candidates_are_replaced_by_the_next(
    filled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"limit": 3, "rerank": "off", "relevance_at_least": 0}
    query = "which port does the staging database listen on"
    full_read = [hit.id for hit in filled.recall(query, **{**asked, "limit": 20}).hits]
    memories, missing = filled.engine.store.memories, set(full_read[:9])
    get_many = memories.get_many
    monkeypatch.setattr(
        memories, "get_many", lambda ids: get_many([id for id in ids if id not in missing])
    )
    assert [hit.id for hit in filled.recall(query, **asked).hits] == full_read[9:12]


def test_unread_update_takes_the_place_of_the_older(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = trivet.remember("The relay is in room 0.", importance=1.0, created_at="2025-03-01").id
    for number in range(1, 30):
        trivet.remember(f"The relay is in room {number}.", importance=0.9)
    new = trivet.remember("The relay is in room 30 from now on.", importance=0.85).id
    store = trivet.engine.store
    by_id = store.memories.get_many([old, new])
    store.likely_updates.finish(by_id[new], [(by_id[new], by_id[old], 0.5)])
    query, asked = (
        "in which room of the house is the relay",
        {"limit": 2, "rerank": "off", "relevance_at_least": 0},
    )
    assert [hit.id for hit in trivet.recall(query, **asked).hits] == [new, old]  # type: ignore[arg-type]
    monkeypatch.setattr(CandidateScoring, "unread", lambda *_: ())
    assert trivet.recall(query, **asked).hits[0].id == old  # type: ignore[arg-type]
