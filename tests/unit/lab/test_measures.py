"""Measures parse by name, match values computed by hand and handle unusual runs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.lab_cases import random_case
from support.small_dataset import dataset
from trivet.errors import InvalidInput
from trivet.lab.measure.measures import (
    KINDS,
    NEEDS_DEPTH,
    STANDARD_MEASURES,
    Measure,
    Measured,
    Run,
    measure,
    parse,
)


@pytest.mark.parametrize(
    "name",
    [
        *STANDARD_MEASURES,
        "nDCG",
        "nDCG-exp@10",
        "MRR@10",
        "condensed-MRR",
        "condensed-all@5",
        "condensed-nDCG-exp@3",
    ],
)
def test_name_round_trips(name: str) -> None:
    assert str(parse(name)) == name


@pytest.mark.parametrize(
    ("name", "meant"),
    [("R@5", "recall@5"), ("RR", "MRR"), ("success@3", "any@3"), ("NDCG@10", "nDCG@10")],
)
def test_measure_aliases(name: str, meant: str) -> None:
    assert parse(name) == parse(meant)


@given(
    st.builds(
        Measure,
        st.sampled_from(sorted({*KINDS.values()} - {"judged"})),
        st.integers(1, 999_999),
        st.booleans(),
    )
)
def test_printed_name_parses_back(one: Measure) -> None:
    assert parse(str(one)) == one


@pytest.mark.parametrize(
    "name", ["", "nDCG@0", "nDCG@-1", "nDCG@x", "precision@5", "condensed-", "condensed-judged@5"]
)
def test_unknown_measure_is_rejected(name: str) -> None:
    with pytest.raises(InvalidInput):
        parse(name)


@pytest.mark.parametrize("kind", sorted(NEEDS_DEPTH))
def test_cutoff_measure_requires_depth(kind: str) -> None:
    with pytest.raises(InvalidInput, match=f"such as {kind}@5"):
        parse(kind)


def value(name: str, grades: dict[str, int], answer: list[str], pool: int = 20) -> float:
    run = {"q": [(document, -float(rank)) for rank, document in enumerate(answer)]}
    return measure(dataset({"q": grades}, pool=pool), run, [name]).overall[str(parse(name))]


GRADES = {"a": 3, "b": 1, "c": 2, "n": 0}
IDEAL = 3 + 2 / math.log2(3) + 1 / 2


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("recall@2", ["a", "d0", "b", "c"], 1 / 3),
        ("recall@5", ["a", "d0", "b", "c"], 1.0),
        ("nDCG@10", ["a", "c", "b"], 1.0),
        ("nDCG@10", ["d0", "b", "a"], (1 / math.log2(3) + 3 / 2) / IDEAL),
        ("nDCG@2", ["d0", "b", "a"], (1 / math.log2(3)) / (3 + 2 / math.log2(3))),
        ("nDCG-exp@10", ["c", "a"], (3 + 7 / math.log2(3)) / (7 + 3 / math.log2(3) + 1 / 2)),
        ("MRR", ["d0", "n", "b"], 1 / 3),
        ("MRR@2", ["d0", "n", "b"], 0.0),
        ("any@2", ["d0", "n", "b"], 0.0),
        ("any@3", ["d0", "n", "b"], 1.0),
        ("all@3", ["a", "b", "c"], 1.0),
        ("all@3", ["a", "b", "n", "c"], 0.0),
        ("all@2", ["a", "b", "c"], 0.0),
        ("judged@4", ["a", "d0", "n", "d1", "b"], 0.5),
        ("judged@10", ["a", "d0", "n", "d1"], 0.5),
        ("condensed-recall@2", ["d0", "a", "d1", "b", "c"], 2 / 3),
        ("condensed-nDCG@10", ["d0", "a", "d1", "c", "d2", "b"], 1.0),
        ("condensed-nDCG@10", ["d0", "n", "b", "d1", "a"], (1 / math.log2(3) + 3 / 2) / IDEAL),
        ("condensed-MRR", ["d0", "d1", "n", "b"], 0.5),
        ("condensed-all@3", ["d0", "a", "d1", "b", "d2", "c"], 1.0),
        ("condensed-any@1", ["d0", "a"], 1.0),
    ],
)
def test_values_match_hand_computed_ones(name: str, answer: list[str], expected: float) -> None:
    assert value(name, GRADES, answer) == pytest.approx(expected, abs=1e-12)


def test_condensed_list_drops_unjudged_documents() -> None:
    data, run = random_case(seed=4)
    short = {
        query: [pair for pair in answer if pair[0] in data.grades[query]]
        for query, answer in run.items()
    }
    names = ["nDCG@10", "recall@5", "recall@10", "MRR", "all@5"]
    condensed = measure(data, run, [f"condensed-{name}" for name in names])
    assert list(condensed.overall.values()) == list(measure(data, short, names).overall.values())


def test_ties_break_by_document_id() -> None:
    data = dataset({"q": {"b": 1}}, pool=3)
    for order in (["b", "d0", "d1"], ["d1", "d0", "b"]):
        run = {"q": [(document, 1.0) for document in order]}
        assert measure(data, run, ["MRR"]).overall["MRR"] == 1.0
    assert (
        measure(data, {"q": [("d0", 1.0), ("b", 1.0), ("d1", 2.0)]}, ["MRR"]).overall["MRR"] == 0.5
    )


def test_close_scores_keep_double_precision_order() -> None:
    data = dataset({"q": {"b": 1}}, pool=2)
    assert measure(data, {"q": [("d0", 1.0), ("b", 1.0 + 1e-12)]}, ["MRR"]).overall["MRR"] == 1.0


def test_missing_query_scores_zero() -> None:
    data = dataset(
        {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"b": 1}},
        {"q1": "exact", "q2": "gone", "q3": "gone"},
    )
    measured = measure(data, {"q1": [("a", 1.0)], "q3": []})
    assert {measured.per_query[name]["q2"] for name in STANDARD_MEASURES} == {0.0}
    assert measured.overall["recall@5"] == pytest.approx(1 / 3)
    assert measured.by_stratum["gone"]["nDCG@10"] == 0.0
    assert measured.by_stratum["exact"]["judged@10"] == 1.0


def test_means_overall_and_by_stratum() -> None:
    strata = {"q1": "exact", "q2": "exact", "q3": "other"}
    data = dataset({"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}, strata)
    measured = measure(
        data, {"q1": [("a", 2.0)], "q2": [("a", 2.0), ("b", 1.0)], "q3": [("a", 1.0)]}, ["MRR"]
    )
    assert measured.per_query == {"MRR": {"q1": 1.0, "q2": 0.5, "q3": 0.0}}
    assert measured.overall == {"MRR": 0.5}
    assert measured.by_stratum == {"exact": {"MRR": 0.75}, "other": {"MRR": 0.0}}


def test_unanswerable_queries_are_excluded_from_means() -> None:
    data = dataset(
        {"q1": {"a": 1}, "q2": {"a": 0}, "q3": {}}, {"q1": "one", "q2": "none", "q3": "none"}
    )
    measured = measure(data, {query: [("a", 1.0)] for query in ("q1", "q2", "q3")})
    assert measured.unanswerable == ("q2", "q3")
    assert measured.overall["MRR"] == 1.0
    assert list(measured.by_stratum) == ["one"]


def run_of(score: float = 1.0, query: str = "q", document: str = "a") -> Run:
    return {query: [("d0", 2.0), (document, score)]}


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (run_of(score=math.nan), "query 'q' and document 'a' the score nan"),
        (run_of(score=math.inf), "query 'q' and document 'a' the score inf"),
        (run_of(query="x"), "query 'x', which dataset 'small' does not have"),
        (run_of(document="x"), "query 'q' the document 'x', which is not in the corpus"),
        (run_of(document="d0"), "query 'q' the document 'd0' twice"),
    ],
)
def test_invalid_run_error_names_query_and_document(run: Run, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        measure(dataset({"q": {"a": 1}}, pool=2), run)


def test_dataset_without_answers_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="no query with a relevant document"):
        measure(dataset({"q": {"a": 0}}), {})


def test_measures_keep_order_without_duplicates() -> None:
    measured: Measured = measure(
        dataset({"q": {"a": 1}}), {}, ["MRR", "condensed-MRR", "all@5", "RR", "recall@5"]
    )
    assert list(measured.overall) == ["MRR", "condensed-MRR", "all@5", "recall@5"]
