"""Where the first answer is unsure, rewrites are asked too, within a limit, and the answer says which."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.chat_server import chat_server
from support.invented_secrets import github
from support.opened import Opened
from support.waiting import happened, result_of
from trivet import InvalidInput, Trivet
from trivet.memory.answer import expand

HUSH = "Hush was written by Eudora."
CITY = "Eudora grew up in Lisbon."


@pytest.fixture(autouse=True)
def _never_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer is unsure, but in the tests that set another measure."""
    monkeypatch.setattr(expand, "UNSURE_BELOW", 1.1)


def with_notes(trivet: Trivet) -> Trivet:
    for note in (HUSH, CITY, "Gardens need water.", "The relay hums."):
        trivet.remember(note)
    return trivet


def test_a_rewrite_finds_what_the_question_missed(open_trivet: Opened) -> None:
    with chat_server(
        lambda _: json.dumps({"queries": ["Eudora Lisbon", "relay", "gardens", "a fourth"]})
    ) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec))
        query = "the author of Hush"
        assert [hit.content for hit in trivet.recall(query).hits] == [HUSH]
        answer = trivet.recall(query, expand=True)
        assert answer.hits[0].content == HUSH
        assert CITY in {hit.content for hit in answer.hits}
        assert answer.asked == ("Eudora Lisbon", "relay", "gardens"), "three at most"
        city = next(hit for hit in answer.hits if hit.content == CITY)
        assert city.why.legs["expand"].rank == 1
        assert city.why.legs["expand"].weight == 0.5
        assert "expand" in answer.stages_ms
        assert not answer.health.degraded


def test_without_a_language_model_the_answer_says_that_nothing_was_rewritten(
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


def test_a_sure_answer_is_not_asked_again(
    open_trivet: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expand, "UNSURE_BELOW", 0.0)
    with chat_server(lambda _: json.dumps({"queries": ["Eudora"]})) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        assert trivet.recall("who wrote Hush").asked == ()
        assert server.bodies == []


def test_it_is_off_unless_it_is_wanted(open_trivet: Opened) -> None:
    with chat_server(lambda _: json.dumps({"queries": ["Eudora"]})) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec))
        answer = trivet.recall("who wrote Hush")
        assert (answer.asked, server.bodies) == ((), [])
        assert "expand" not in answer.stages_ms


@pytest.mark.parametrize(
    "said", [500, "no JSON", '{"queries": "one"}', "[]", '{"queries": [1, 2]}']
)
def test_a_language_model_that_fails_is_told_and_the_question_stands(
    open_trivet: Opened, said: str | int
) -> None:
    with chat_server(lambda _: said) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        answer = trivet.recall("who wrote Hush and where did Eudora grow up?")
        assert answer.health.degraded
        leg = answer.health.legs[-1]
        assert (leg.leg, leg.answered) == ("expand", False)
        assert "the question was asked as it is" in (leg.reason or "")
        assert answer.asked == ()
        assert (
            answer.hits
            == trivet.recall("who wrote Hush and where did Eudora grow up?", expand=False).hits
        )


def test_a_silent_language_model_costs_its_time_limit(open_trivet: Opened) -> None:
    with chat_server(lambda _: None) as server:
        trivet = with_notes(
            open_trivet(expand_llm=server.spec, rerank="off", expand=True, expand_time_limit_ms=200)
        )
        answer = trivet.recall("who wrote Hush and where did Eudora grow up?")
        assert answer.hits[0].content in (HUSH, CITY)
        assert not answer.health.legs[-1].answered
        assert answer.asked == (), "no time was left"


def test_secrets_and_private_words_are_not_sent(open_trivet: Opened) -> None:
    with chat_server(lambda _: json.dumps({"queries": ["Eudora"]})) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        trivet.recall(f"who wrote Hush <private>HIDDEN-WORDS</private> {github('asked')}")
        (body,) = server.bodies
        assert "who wrote Hush" in body
        for word in ("HIDDEN", "ghp_", "[secret", "[private"):
            assert word not in body


def test_a_model_that_repeats_the_question_adds_nothing(open_trivet: Opened) -> None:
    with chat_server(
        lambda _: json.dumps({"queries": ["WHO WROTE HUSH", " ", "who  wrote hush"]})
    ) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        assert trivet.recall("who wrote hush").asked == ()


def test_a_wrong_setting_is_told_before_the_store_is_touched(open_trivet: Opened) -> None:
    with pytest.raises(InvalidInput, match="The setting expand_llm"):
        open_trivet(expand_llm="gpt-4")


def test_a_memory_found_by_a_rewrite_is_judged_by_it(open_trivet: Opened) -> None:
    with chat_server(lambda _: json.dumps({"queries": ["Eudora grew up in Lisbon"]})) as server:
        trivet = with_notes(open_trivet(expand_llm=server.spec, rerank="off", expand=True))
        relevance = {hit.content: hit.relevance for hit in trivet.recall("the author of Hush").hits}
        assert relevance[CITY] > 0.5


def test_while_a_language_model_is_waited_for_others_recall(open_trivet: Opened) -> None:
    with chat_server(lambda _: None) as server, ThreadPoolExecutor(1) as threads:
        trivet = with_notes(open_trivet(expand_llm=server.spec, expand_time_limit_ms=60_000))
        waiting = threads.submit(trivet.recall, "the author of Hush", expand=True)
        happened(server.asked)
        assert len(trivet.recall("relay").hits) == 1
        assert not waiting.done(), "it had its turn only afterwards"
        server.over.set()
        assert result_of(waiting).hits[0].content == HUSH
