"""Each hit states its probability of being relevant, and a recall can report that nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trivet import InvalidInput, Trivet
from trivet.contract import Recall, check
from trivet.memory.answer.relevance import MAX_UNLIKELY_SHOWN, fit_decreasing
from trivet.memory.recall import recall_with_decision
from trivet.search.relevance import READ, probability, relevance_model
from trivet.search.relevance_features import HEAD, feature_names

from .conftest import ANSWERABLE, NOTES, UNANSWERABLE, Opened


@pytest.mark.parametrize(("query", "place"), [*zip(ANSWERABLE, (0, 1, 2, 3, 4, 7), strict=True)])
def test_answer_ranks_first_without_noise(store: Trivet, query: str, place: int) -> None:
    answer = store.recall(query)
    assert answer.hits[0].content == NOTES[place]
    assert answer.hits[0].strength != "weak"
    assert answer.best_relevance == answer.hits[0].relevance
    assert not answer.nothing_relevant
    everything = store.recall(query, relevance_at_least=0)
    assert len(everything.hits) == len(NOTES)
    assert len(answer.hits) < len(NOTES)
    assert everything.hits[0].relevance > 2 * everything.hits[-1].relevance


@pytest.mark.parametrize("query", [*ANSWERABLE, *UNANSWERABLE])
def test_probabilities_follow_rank_order(store: Trivet, query: str) -> None:
    stated = [hit.relevance for hit in store.recall(query, relevance_at_least=0).hits]
    assert stated == sorted(stated, reverse=True)


def test_fit_decreasing_averages_order_violations() -> None:
    assert fit_decreasing([0.9, 0.1, 0.3, 0.05]) == [0.9, 0.2, 0.2, 0.05]
    assert fit_decreasing([0.1, 0.2, 0.6]) == [0.3, 0.3, 0.3]
    assert fit_decreasing([]) == []


def test_relevance_is_comparable_across_queries(store: Trivet) -> None:
    answerable = [store.recall(query).hits[0].relevance for query in ANSWERABLE]
    unanswerable = [hit.relevance for query in UNANSWERABLE for hit in store.recall(query).hits[:1]]
    assert min(answerable) > max(unanswerable)


@pytest.mark.parametrize("query", UNANSWERABLE)
def test_irrelevant_query_returns_weak_candidates(store: Trivet, query: str) -> None:
    plain = store.recall(query)
    assert plain.nothing_relevant
    assert [hit.strength for hit in plain.hits] == ["weak"] * len(plain.hits)
    assert 0 < len(plain.hits) <= MAX_UNLIKELY_SHOWN
    threshold = relevance_model().threshold
    strict = store.recall(query, relevance_at_least=threshold)
    assert strict.nothing_relevant
    assert strict.hits == ()
    assert strict.best_relevance == plain.best_relevance


def test_relevance_threshold_filters_hits(store: Trivet) -> None:
    answer = store.recall(ANSWERABLE[0], relevance_at_least=0)
    least = answer.hits[1].relevance
    assert [hit.id for hit in store.recall(ANSWERABLE[0], relevance_at_least=least).hits] == [
        hit.id for hit in answer.hits if hit.relevance >= least
    ]
    assert store.recall(ANSWERABLE[0], relevance_at_least=1.0).hits == ()


PETS = (
    "My dog is called Rex.",
    "I keep the spare key under the blue flowerpot.",
    "The dentist is on Thursday at nine.",
)


@pytest.mark.parametrize(
    ("query", "place"), [("name of my pet", 0), ("when do I have to get my teeth looked at?", 2)]
)
def test_paraphrase_in_small_store_is_answered(tmp_path: Path, query: str, place: int) -> None:
    with Trivet.open(tmp_path / "small.db", background=False) as trivet:
        trivet.remember_many({"content": text} for text in PETS)
        answer = trivet.recall(query)
    assert answer.hits[0].content == PETS[place]
    assert answer.hits[0].strength != "weak"
    assert not answer.nothing_relevant


def test_why_not_reports_relevance_threshold(store: Trivet) -> None:
    answer = store.recall(UNANSWERABLE[0])
    explanation = store.why_not(UNANSWERABLE[0], answer.hits[0].id, relevance_at_least=0.9)
    assert not explanation.returned
    assert "has a relevance of" in " ".join((explanation.verdict, *explanation.reasons))


def test_setting_applies_when_caller_omits_threshold(open_trivet: Opened) -> None:
    trivet = open_trivet(relevance_at_least=1.0)
    trivet.remember("zebra relay")
    assert trivet.recall("zebra relay").hits == ()
    assert len(trivet.recall("zebra relay", relevance_at_least=0.0).hits) == 1


def test_empty_store_has_nothing_relevant(open_trivet: Opened) -> None:
    answer = open_trivet().recall("zebra relay")
    assert answer.nothing_relevant
    assert answer.best_relevance is None


@pytest.mark.parametrize("size", [1, 2, 30])
def test_word_matches_suffice_at_any_store_size(open_trivet: Opened, size: int) -> None:
    trivet = open_trivet()
    trivet.remember("The zebra relay listens on channel nine.")
    trivet.remember_many(
        {"content": f"Note {number} about gardens and water."} for number in range(size - 1)
    )
    answer = trivet.recall("zebra relay channel")
    assert not answer.nothing_relevant
    assert answer.hits[0].relevance > 0.5


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "much"])
def test_invalid_threshold_is_rejected(store: Trivet, value: Any) -> None:
    with pytest.raises(InvalidInput, match="relevance_at_least"):
        store.recall("zebra", relevance_at_least=value)


def test_packaged_model_is_consistent() -> None:
    model = relevance_model()
    assert 0 < model.threshold < 1
    assert "made_by" in model.manifest
    for calibrated in (*model.embedders.values(), model.other, model.words):
        for linear in (calibrated.unread, *calibrated.read.values()):
            assert set(linear.features) <= {*feature_names(), READ}
    assert "dense" not in model.other.unread.features, (
        "cosines of an unknown embedder carry no meaning"
    )
    evidence = {
        name: one.weight
        for name, one in model.embedders["trivet-embedder-2"].unread.features.items()
    }
    assert min(evidence.values()) >= 0, "missing evidence of one kind may not outweigh another kind"


def test_unknown_embedder_ignores_cosines() -> None:
    model = relevance_model()
    known = model.embedders["all-MiniLM-L6-v2"]
    assert model.of("all-MiniLM-L6-v2/0123", with_vectors=True, reader=None) is known.unread
    assert model.of("openai:some-model", with_vectors=True, reader=None) is model.other.unread
    assert model.of(None, with_vectors=False, reader=None) is model.words.unread


def test_only_bundled_reranker_scores_count() -> None:
    model = relevance_model()
    tuned = model.embedders["trivet-embedder-2"]
    assert (
        model.of("trivet-embedder-2/1", with_vectors=True, reader="trivet-reranker-3/2")
        is tuned.read["trivet-reranker-3"]
    )
    assert (
        model.of("trivet-embedder-2/1", with_vectors=True, reader="cohere:rerank-v4")
        is tuned.unread
    )


def test_reranking_runs_only_when_unsure(tmp_path: Path) -> None:
    with Trivet.open(tmp_path / "small.db", background=False) as trivet:
        trivet.remember_many({"content": text} for text in PETS)
        clear, unsure = trivet.recall("My dog is called Rex."), trivet.recall("name of my pet")
        never = trivet.recall("name of my pet", rerank="off")
    assert clear.hits[0].why.rerank is None
    assert unsure.hits[0].why.rerank is not None
    assert never.hits[0].why.rerank is None


@pytest.mark.parametrize(("odds", "expected"), [(0.0, 0.5), (1e6, 1.0), (-1e6, 0.0)])
def test_probabilities_do_not_overflow(odds: float, expected: float) -> None:
    assert probability(odds) == expected


def test_head_candidates_have_all_features(tmp_path: Path) -> None:
    with Trivet.open(tmp_path / "store.db", embedder="none", background=False) as trivet:
        for number in range(HEAD + 2):
            trivet.remember(f"relay {number}")
        engine = trivet.engine
        request = check(
            Recall,
            {"query": "relay", "limit": 100, "recipe": "depth(100)", "relevance_at_least": 0.0},
        )
        _, decision = recall_with_decision(engine, request)
        known = [decision.pool.evidence[0].of(hit.fused.id, hit.memory) for hit in decision.hits]
    assert [set(features) for features in known if features is not None] == [
        set(feature_names())
    ] * HEAD
    assert len(known) == HEAD + 2
