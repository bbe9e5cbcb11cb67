"""The learned fusion: what it promises whatever its weights are, and how it tells its reasons."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.errors import InvalidInput
from trivet.search.fuse import Evidence, fuse, parse_fusion
from trivet.search.fuse.features import HEAD, LEG_FEATURES, LegFeatures
from trivet.search.fuse.learned import USUAL, learned_model
from trivet.search.relevance.wording import WORDING_FEATURES
from trivet.types import Candidate, Ranking

LEARNED = parse_fusion("learned")
scores = st.dictionaries(st.integers(0, 80), st.floats(0, 1).map(lambda number: round(number, 3)), max_size=70)


def ranking(leg: str, found: Mapping[int, float], floor: float = 0.0) -> Ranking:
    pairs = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    return Ranking(
        leg=leg, floor=floor, candidates=tuple(Candidate(id=f"m{id:02}", score=score) for id, score in pairs)
    )


def words_of(covered: Mapping[str, float]) -> Evidence:
    """Nothing special about the words, but that these memories hold so large a share of them, side by side."""
    usual = dict.fromkeys(WORDING_FEATURES, 0.0) | {"known": USUAL["known"]}
    return lambda ids: {id: usual | dict.fromkeys(("coverage", "pairs"), covered.get(id, 0.0)) for id in ids}


@given(scores, scores, scores)
def test_laws(words: dict[int, float], vectors: dict[int, float], walked: dict[int, float]) -> None:
    rankings = [ranking("lexical", words), ranking("dense", vectors, -1.0), ranking("graph", walked)]
    fused = fuse(LEARNED, rankings)
    assert {hit.id for hit in fused} == {candidate.id for one in rankings for candidate in one.candidates}
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)
    assert all(0 <= hit.score <= 1 for hit in fused)
    assert fuse(LEARNED, rankings[::-1]) == fused, "the order in which legs answered does not count"


@given(scores)
def test_one_leg_alone_keeps_its_order(found: dict[int, float]) -> None:
    only = ranking("lexical", found)
    assert [hit.id for hit in fuse(LEARNED, [only])] == [candidate.id for candidate in only.candidates]


def test_words_that_answer_lift_a_memory_and_are_told() -> None:
    rankings = [ranking("lexical", {1: 3.0, 2: 2.999, 3: 1.0}), ranking("dense", {1: 0.5, 2: 0.4999, 3: 0.1}, -1.0)]
    plain = fuse(LEARNED, rankings)
    assert plain[0].id == "m01"
    lifted = fuse(LEARNED, rankings, words_of({"m02": 1.0}))
    assert lifted[0].id == "m02"
    parts = {part.leg: part for part in lifted[0].contributions}
    assert set(parts) == {"dense", "fused", "lexical", "words"}
    assert parts["words"].normalised > 0
    assert (parts["lexical"].rank, parts["lexical"].score) == (2, 2.999)
    assert all(part.weight == 1.0 for part in parts.values())
    totals = [sum(part.normalised for part in hit.contributions) for hit in lifted]
    assert totals == sorted(totals, reverse=True), "the parts add up to what the order is made of"


def test_what_lies_beyond_the_head_stays_behind_it_in_order() -> None:
    rankings = [
        ranking("lexical", {id: 100.0 - id for id in range(HEAD + 20)}),
        ranking("dense", {id: 0.9 - id / 100 for id in range(HEAD + 20)}, -1.0),
    ]
    tail = [hit.id for hit in fuse(LEARNED, rankings)][HEAD:]
    assert tail == [f"m{id:02}" for id in range(HEAD, HEAD + 20)]


def test_the_packaged_model_knows_only_features_there_are() -> None:
    model = learned_model()
    known = {*LEG_FEATURES, *WORDING_FEATURES}
    for name in model.weights:
        feature, _, trait = name.partition("*")
        assert feature in known
        assert not trait or trait in USUAL
    assert "made_by" in model.manifest


def test_every_feature_is_there_for_every_candidate() -> None:
    rankings = [ranking("lexical", {1: 3.0}), ranking("dense", {2: 0.5}, -1.0)]
    fused = fuse(parse_fusion("rrf"), rankings)
    features = LegFeatures(fused, rankings)
    assert len(features) == len(fused)
    for at in range(len(fused)):
        assert set(features.of(at)) == set(LEG_FEATURES)
    assert len(LegFeatures([], rankings)) == 0


@pytest.mark.parametrize("text", ["learned(k=60)", "learned(dense=2)", "learned(dense)"])
def test_it_takes_no_options(text: str) -> None:
    with pytest.raises(InvalidInput, match="learned takes no options"):
        parse_fusion(text)
