"""Every hit says how likely it is to be relevant, and a recall can say that nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trivet import InvalidInput, Trivet
from trivet.contract import Recall, check
from trivet.memory.recall import follow
from trivet.search.relevance.features import HEAD, feature_names
from trivet.search.relevance.model import probability, relevance_model

from .conftest import ANSWERABLE, NOTES, UNANSWERABLE, Opened


@pytest.mark.parametrize(("query", "place"), [*zip(ANSWERABLE, (0, 1, 2, 3, 4, 7), strict=True)])
def test_an_answer_is_likelier_than_what_came_along(store: Trivet, query: str, place: int) -> None:
    answer = store.recall(query)
    assert answer.hits[0].content == NOTES[place]
    assert answer.best_relevance == answer.hits[0].relevance == max(hit.relevance for hit in answer.hits)
    assert answer.hits[0].relevance > 2 * answer.hits[1].relevance
    assert not answer.nothing_relevant


def test_relevance_means_the_same_from_query_to_query(store: Trivet) -> None:
    answerable = [store.recall(query).hits[0].relevance for query in ANSWERABLE]
    unanswerable = [hit.relevance for query in UNANSWERABLE for hit in store.recall(query).hits[:1]]
    assert min(answerable) > max(unanswerable)
    assert all(store.recall(query).hits[0].score == pytest.approx(0.85, abs=0.15) for query in UNANSWERABLE), (
        "scores, unlike relevance, compare within one answer only"
    )


@pytest.mark.parametrize("query", UNANSWERABLE)
def test_nothing_relevant_is_said_and_hits_are_left_out_only_if_asked(store: Trivet, query: str) -> None:
    plain = store.recall(query)
    assert plain.nothing_relevant
    assert plain.hits
    threshold = relevance_model().threshold
    strict = store.recall(query, relevance_at_least=threshold)
    assert strict.nothing_relevant
    assert strict.hits == ()
    assert strict.best_relevance == plain.best_relevance
    assert strict.best_relevance is not None
    assert strict.best_relevance < threshold


def test_one_likely_hit_lets_the_others_through(store: Trivet) -> None:
    best = store.recall(ANSWERABLE[0]).hits[0].relevance
    assert len(store.recall(ANSWERABLE[0], relevance_at_least=best).hits) > 1
    assert store.recall(ANSWERABLE[0], relevance_at_least=1.0).hits == ()


def test_why_not_tells_of_the_threshold(store: Trivet) -> None:
    answer = store.recall(UNANSWERABLE[0])
    told = store.why_not(UNANSWERABLE[0], answer.hits[0].id, relevance_at_least=0.9)
    assert not told.returned
    assert "likely to be relevant" in " ".join((told.verdict, *told.reasons))


def test_the_setting_holds_where_the_caller_says_nothing(open_trivet: Opened) -> None:
    trivet = open_trivet(relevance_at_least=1.0)
    trivet.remember("zebra relay")
    assert trivet.recall("zebra relay").hits == ()
    assert len(trivet.recall("zebra relay", relevance_at_least=0.0).hits) == 1


def test_an_empty_store_has_nothing_relevant(open_trivet: Opened) -> None:
    answer = open_trivet().recall("zebra relay")
    assert answer.nothing_relevant
    assert answer.best_relevance is None


@pytest.mark.parametrize("size", [1, 2, 30])
def test_words_alone_are_enough_to_be_sure_in_stores_of_any_size(open_trivet: Opened, size: int) -> None:
    trivet = open_trivet()
    trivet.remember("The zebra relay listens on channel nine.")
    trivet.remember_many({"content": f"Note {number} about gardens and water."} for number in range(size - 1))
    answer = trivet.recall("zebra relay channel")
    assert not answer.nothing_relevant
    assert answer.hits[0].relevance > 0.5


@pytest.mark.parametrize("query", ["radiator", "soup leek", "6543", "pull requests"])
def test_a_memory_that_holds_every_word_is_never_called_unlikely(store: Trivet, query: str) -> None:
    answer = store.recall(query)
    assert not answer.nothing_relevant
    assert answer.hits[0].relevance >= 0.5


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "much"])
def test_no_probability_is_refused(store: Trivet, value: Any) -> None:
    with pytest.raises(InvalidInput, match="relevance_at_least"):
        store.recall("zebra", relevance_at_least=value)


def test_the_packaged_model_is_whole() -> None:
    model = relevance_model()
    assert 0 < model.threshold < 1
    assert "made_by" in model.manifest
    for linear in (*model.embedders.values(), model.other, model.words):
        assert set(linear.features) <= {*feature_names()}
    assert not any(name in model.other.features for name in ("dense", "dense_top")), (
        "a cosine of an unknown embedder means nothing"
    )


def test_an_unknown_embedder_is_judged_without_its_cosines() -> None:
    model = relevance_model()
    assert model.of("all-MiniLM-L6-v2/0123", with_vectors=True) is model.embedders["all-MiniLM-L6-v2"]
    assert model.of("openai:some-model", with_vectors=True) is model.other
    assert model.of(None, with_vectors=False) is model.words


def test_a_reranker_changes_the_order_and_not_what_is_likely(store: Trivet) -> None:
    plain = {hit.id: hit.relevance for hit in store.recall(ANSWERABLE[0]).hits}
    reranked = store.recall(ANSWERABLE[0], rerank="fast")
    assert {hit.id: hit.relevance for hit in reranked.hits} == plain
    assert all(hit.why.rerank is not None for hit in reranked.hits)


@pytest.mark.parametrize(("odds", "expected"), [(0.0, 0.5), (1e6, 1.0), (-1e6, 0.0)])
def test_probabilities_do_not_overflow(odds: float, expected: float) -> None:
    assert probability(odds) == expected


def test_every_feature_is_there_for_every_candidate_of_the_head(tmp_path: Path) -> None:
    with Trivet.open(tmp_path / "store.db", embedder="none", background=False) as trivet:
        for number in range(HEAD + 2):
            trivet.remember(f"relay {number}")
        engine = trivet.engine
        request = check(Recall, {"query": "relay", "limit": 100, "recipe": "depth(100)"})
        _, decision = follow(engine, request)
        known = [decision.pool.evidence[0].of(hit.fused.id, hit.memory) for hit in decision.hits]
    assert [set(features) for features in known if features is not None] == [set(feature_names())] * HEAD
    assert len(known) == HEAD + 2
