"""Answers and `why_not` explain how the graph reached a hit or why it did not."""

from __future__ import annotations

import pytest

from trivet import Trivet

QUERY = "who bought the firm Acme"


@pytest.fixture
def ids(trivet: Trivet) -> list[str]:
    contents = [
        "The firm Acme was bought by Globex last spring.",
        "The canteen of Globex is in Rome.",
        "Many a firm bought spring water.",
        "The firm is a word.",
        "We wrote to Acme about nothing.",
    ]
    found = [trivet.remember(content).id for content in contents]
    trivet.drain()
    return found


def path(trivet: Trivet, id: str, query: str = QUERY) -> list[str]:
    (hit,) = [hit for hit in trivet.recall(query).hits if hit.id == id]
    return [step.name for step in hit.why.path]


def test_graph_hit_without_matching_words_has_a_path(trivet: Trivet, ids: list[str]) -> None:
    (hit,) = [hit for hit in trivet.recall(QUERY).hits if hit.id == ids[1]]
    assert hit.why.legs["lexical"].rank is None
    assert hit.why.legs["graph"].rank is not None
    assert [step.kind for step in hit.why.path] in (
        ["memory", "concept"],
        ["concept", "memory", "concept"],
    )
    assert [step.name for step in hit.why.path][-2:] == [ids[0], "Globex"]


def test_query_concept_leads_directly_to_the_memory(trivet: Trivet, ids: list[str]) -> None:
    assert path(trivet, ids[4]) == ["Acme"]


def test_hit_not_reached_by_graph_has_no_path(trivet: Trivet, ids: list[str]) -> None:
    assert path(trivet, ids[2]) == []
    assert all(not hit.why.path for hit in trivet.recall("firm bought water").hits)


def test_no_path_without_the_graph_leg(trivet: Trivet, ids: list[str]) -> None:
    answer = trivet.recall(QUERY, recipe="legs(lexical)")
    assert all(not hit.why.path for hit in answer.hits)


def test_successor_is_reached_through_the_superseded(trivet: Trivet, ids: list[str]) -> None:
    successor = trivet.remember("It was closed.").id
    trivet.link(successor, "supersedes", ids[1])
    trivet.drain()
    assert path(trivet, successor)[-3:] == [ids[0], "Globex", ids[1]]


def test_why_not_reports_query_without_concepts(trivet: Trivet, ids: list[str]) -> None:
    reasons = trivet.why_not("firm bought water", ids[1]).reasons
    assert "the graph leg has no hits: the query names no concept the graph knows" in reasons


def test_why_not_reports_missing_start(trivet: Trivet, ids: list[str]) -> None:
    reasons = trivet.why_not("Rome", ids[0]).reasons
    assert any("no hit of the other legs stands out" in reason for reason in reasons)


def test_why_not_reports_rank_in_the_graph_leg(trivet: Trivet, ids: list[str]) -> None:
    reasons = trivet.why_not(QUERY, ids[1]).reasons
    assert any(reason.startswith("the graph leg put it at") for reason in reasons)
    reasons = trivet.why_not(QUERY, ids[3]).reasons
    assert any(reason.startswith("the graph leg did not rank it among its") for reason in reasons)


def test_sensitive_memory_is_on_no_path(trivet: Trivet, ids: list[str]) -> None:
    trivet.edit(ids[0], sensitive=True)
    trivet.drain()
    assert all(
        ids[0] not in [step.name for step in hit.why.path] for hit in trivet.recall(QUERY).hits
    )
    assert any("not in the graph" in reason for reason in trivet.why_not("zebra", ids[0]).reasons)
