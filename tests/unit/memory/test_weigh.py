"""Recall reads the memories that can come first and no others: its answers are those of one that reads them all."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from support.opened import Opened
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
SAID = ("listens on port", "was moved to", "belongs to", "is repaired by", "is closed on", "costs")
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
    chance = random.Random(5)
    trivet.remember_many(_memory(chance, number) for number in range(120))
    trivet.drain()
    return trivet


def _memory(chance: random.Random, number: int) -> dict[str, Any]:
    subject = chance.choice(SUBJECTS)
    return {
        "content": f"The {subject} {chance.choice(SAID)} {number}. See LOCK_{number % 9}.",
        "title": subject.capitalize() if chance.random() < 0.2 else None,
        "importance": chance.choice((0.0, 0.5, 0.5, 0.5, 0.9, 1.0)),
        "created_at": f"2026-0{chance.randint(1, 9)}-{chance.randint(10, 28)}",
    }


def told(answer: Answer) -> list[tuple[Any, ...]]:
    return [(hit.id, hit.score, hit.why.bonus, hit.why.time, hit.relevance) for hit in answer.hits]


def test_the_hits_are_those_of_a_recall_that_reads_every_candidate(
    filled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [
        told(filled.recall(query, relevance_at_least=0, **options)) for query, options in QUESTIONS
    ]
    monkeypatch.setattr(CandidateScoring, "_possible", _everyone)
    every = [
        told(filled.recall(query, relevance_at_least=0, **options)) for query, options in QUESTIONS
    ]
    assert few == every
    assert all(every)


def _everyone(weighing: CandidateScoring, wanted: int) -> Sequence[Fused]:
    return weighing._fused


def test_of_the_candidates_hardly_more_are_read_than_are_shown(
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


def test_an_important_memory_is_read_however_far_down_it_was_found(trivet: Trivet) -> None:
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


def test_why_not_says_that_it_was_not_important_enough_to_be_read(trivet: Trivet) -> None:
    for number in range(40):
        trivet.remember(f"The relay is in room {number}.", importance=0.9)
    low = trivet.remember("The green relay is in no room.", importance=0.0).id
    why = trivet.why_not("in which room is the relay", low, limit=2)
    assert not why.returned
    assert why.verdict.endswith("of 41 after fusion: with an importance of 0 too low to be read.")


@pytest.mark.parametrize("column", ["importance", "length"])
def test_a_number_that_is_none_costs_the_other_memories_nothing(
    open_trivet: Opened, column: str
) -> None:
    trivet = open_trivet(embedder="none")
    damaged = trivet.remember("The relay is in room 1.").id
    whole = trivet.remember("The relay is in room 2.").id
    trivet.close()
    with closing(sqlite3.connect(trivet.settings.path)) as connection, connection:
        connection.execute(f"UPDATE memory SET {column} = 'much' WHERE id = ?", (damaged,))
    hits = open_trivet(embedder="none").recall("in which room is the relay").hits
    assert whole in {hit.id for hit in hits}


def test_where_memories_are_gone_since_they_were_found_others_move_up(
    filled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"limit": 3, "rerank": "off", "relevance_at_least": 0}
    query = "which port does the staging database listen on"
    every = [hit.id for hit in filled.recall(query, **{**asked, "limit": 20}).hits]
    memories, gone = filled.engine.store.memories, set(every[:9])
    get_many = memories.get_many
    monkeypatch.setattr(
        memories, "get_many", lambda ids: get_many([id for id in ids if id not in gone])
    )
    assert [hit.id for hit in filled.recall(query, **asked).hits] == every[9:12]


def test_what_updates_a_hit_and_was_found_nearly_as_well_takes_its_place_although_it_was_not_read(
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
