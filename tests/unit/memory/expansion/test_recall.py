"""Query expansion asks a language model for rewrites within a limit and reports them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.chat_server import chat_server
from support.invented_secrets import github
from support.store_fixtures import Opened
from support.waiting import happened, result_of
from trivet import InvalidInput, Trivet
from trivet.memory.answer import expand

HUSH = "Hush was written by Eudora."
CITY = "Eudora grew up in Lisbon."


@pytest.fixture(autouse=True)
def _always_unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every answer as unsure unless a test sets another threshold."""
    monkeypatch.setattr(expand, "UNSURE_BELOW", 1.1)


def with_notes(trivet: Trivet) -> Trivet:
    for note in (HUSH, CITY, "Gardens need water.", "The relay hums."):
        trivet.remember(note)
    return trivet


def test_rewrite_finds_what_the_question_missed(open_trivet: Opened) -> None:
    with chat_server(
        lambda _: json.dumps({"queries": ["Eudora Lisbon", "relay", "gardens", "a fourth"]})
    ) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec))
        query = "the author of Hush"
        assert [hit.content for hit in trivet.recall(query).hits] == [HUSH]
        answer = trivet.recall(query, expand=True)
        assert answer.hits[0].content == HUSH
        assert CITY in {hit.content for hit in answer.hits}
        assert answer.asked == ("Eudora Lisbon", "relay", "gardens"), "at most three"
        city = next(hit for hit in answer.hits if hit.content == CITY)
        assert city.why.legs["expand"].rank == 1
        assert city.why.legs["expand"].weight == 0.5
        assert "expand" in answer.stages_ms
        assert not answer.health.degraded


def test_missing_language_model_is_reported(
    open_trivet: Opened,
) -> None:
    query = "who wrote Hush and where did Eudora grow up?"
    trivet = with_notes(open_trivet(expand=True))
    answer = trivet.recall(query)
    assert answer.asked == ()
    assert expand.NO_LANGUAGE_MODEL in answer.health.notes
    assert not answer.health.degraded
    plain = trivet.recall(query, expand=False)
    assert plain.hits == answer.hits
    assert expand.NO_LANGUAGE_MODEL not in plain.health.notes


def test_confident_answer_is_not_expanded(
    open_trivet: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expand, "UNSURE_BELOW", 0.0)
    with chat_server(lambda _: json.dumps({"queries": ["Eudora"]})) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        assert trivet.recall("who wrote Hush").asked == ()
        assert server.bodies == []


def test_expansion_is_off_by_default(open_trivet: Opened) -> None:
    with chat_server(lambda _: json.dumps({"queries": ["Eudora"]})) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec))
        answer = trivet.recall("who wrote Hush")
        assert (answer.asked, server.bodies) == ((), [])
        assert "expand" not in answer.stages_ms


@pytest.mark.parametrize(
    "reply", [500, "no JSON", '{"queries": "one"}', "[]", '{"queries": [1, 2]}']
)
def test_language_model_failure_is_reported_and_harmless(
    open_trivet: Opened, reply: str | int
) -> None:
    with chat_server(lambda _: reply) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        answer = trivet.recall("who wrote Hush and where did Eudora grow up?")
        assert answer.health.degraded
        leg = answer.health.legs[-1]
        assert (leg.leg, leg.answered) == ("expand", False)
        assert "the question was not rewritten" in (leg.reason or "")
        assert answer.asked == ()
        assert (
            answer.hits
            == trivet.recall("who wrote Hush and where did Eudora grow up?", expand=False).hits
        )


def test_silent_language_model_costs_its_time_limit(open_trivet: Opened) -> None:
    with chat_server(lambda _: None) as server:
        trivet = with_notes(
            open_trivet(expand_llm=server.spec, rerank="off", expand=True, expand_time_limit_ms=200)
        )
        answer = trivet.recall("who wrote Hush and where did Eudora grow up?")
        assert answer.hits[0].content in (HUSH, CITY)
        assert not answer.health.legs[-1].answered
        assert answer.asked == (), "no time was left"


def test_secrets_and_private_text_are_not_sent(open_trivet: Opened) -> None:
    with chat_server(lambda _: json.dumps({"queries": ["Eudora"]})) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        trivet.recall(f"who wrote Hush <private>HIDDEN-WORDS</private> {github('asked')}")
        (body,) = server.bodies
        assert "who wrote Hush" in body
        for word in ("HIDDEN", "ghp_", "[secret", "[private"):
            assert word not in body


def test_repeated_question_adds_nothing(open_trivet: Opened) -> None:
    with chat_server(
        lambda _: json.dumps({"queries": ["WHO WROTE HUSH", " ", "who  wrote hush"]})
    ) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        assert trivet.recall("who wrote hush").asked == ()


def test_invalid_setting_is_refused_before_the_store_opens(open_trivet: Opened) -> None:
    with pytest.raises(InvalidInput, match="The setting expand_llm"):
        open_trivet(expand_llm="gpt-4")


def test_hit_from_rewrite_is_scored_by_the_rewrite(open_trivet: Opened) -> None:
    with chat_server(lambda _: json.dumps({"queries": ["Eudora grew up in Lisbon"]})) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        relevance = {hit.content: hit.relevance for hit in trivet.recall("the author of Hush").hits}
        assert relevance[CITY] > 0.5


def test_recall_continues_while_language_model_is_pending(open_trivet: Opened) -> None:
    with chat_server(lambda _: None) as server, ThreadPoolExecutor(1) as threads:
        trivet = with_notes(open_trivet(expand_llm=server.spec, expand_time_limit_ms=60_000))
        waiting = threads.submit(trivet.recall, "the author of Hush", expand=True)
        happened(server.asked)
        assert len(trivet.recall("relay").hits) == 1
        assert not waiting.done(), "the first recall must still be waiting"
        server.over.set()
        assert result_of(waiting).hits[0].content == HUSH
