"""Helpers of the graph evidence study: held-out choices, moved hits and number formatting."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies"))

import numpy as np
from choosing import GROUPS, Measured, left_out
from embedder import MINILM, check_same
from graph_arms import Farthest, by_nearness, moved
from graph_evidence import over_corpora, verdict
from stored_vectors import Vectors
from tables import interval, marked, signed

from trivet.analyse import analyse_query
from trivet.lab.datasets.dataset import Dataset, Document, Judgement, Query
from trivet.lab.measure.bench import Bench, open_bench
from trivet.lab.measure.comparison import holm
from trivet.search.recipe import parse_recipe
from trivet.types import Filter, Ranking


def row(difference: float, reach: float = 0.001, p: float = 0.5) -> dict[str, Any]:
    figures = {
        "difference": difference,
        "low": difference - reach,
        "high": difference + reach,
        "p": p,
    }
    return {"nDCG@10": figures}


def test_held_out_group_does_not_influence_choice() -> None:
    """Only the dialogue group prefers `y`, strongly enough to decide for all others."""
    values = {
        name: [[0.0, 0.0, 1.0]] if group == "dialogue" else [[0.0, 0.1, 0.0]]
        for name, group in GROUPS.items()
    }
    corpora = {
        name: Measured(["shipped", "x", "y"], np.array(rows)) for name, rows in values.items()
    }
    folds = left_out(corpora, ["x", "y"], "shipped")["corpora"]
    assert {folds[name]["chosen"] for name, group in GROUPS.items() if group == "dialogue"} == {"x"}
    assert {folds[name]["chosen"] for name, group in GROUPS.items() if group != "dialogue"} == {"y"}
    assert folds["locomo"]["difference"] == [0.0, 0.0, 0.0], (
        "the choice of the other groups gains nothing here"
    )


def test_p_values_are_corrected_over_corpora() -> None:
    sweep = {name: {"x": row(0.1, p=p)} for name, p in (("a", 0.01), ("b", 0.04), ("c", 0.5))}
    corrected = over_corpora(sweep, "x", ["nDCG@10"])
    assert [corrected[name]["nDCG@10"] for name in sweep] == pytest.approx(holm([0.01, 0.04, 0.5]))


@pytest.mark.parametrize(
    ("figures", "p", "expected_verdict"),
    [
        (row(0.05), 0.001, "wins"),
        (row(-0.05), 0.001, "hurts"),
        (row(-0.003), 0.001, "loses a little"),
        (row(0.0), 0.9, "neutral"),
        (row(0.0, reach=0.02), 0.9, "neutral, but a loss above 0.005 is not ruled out"),
    ],
)
def test_verdict_respects_interval(
    figures: dict[str, Any], p: float, expected_verdict: str
) -> None:
    assert verdict(figures, p) == expected_verdict


def test_changes_in_first_ten_are_counted_by_origin() -> None:
    others = [f"x{number}" for number in range(10)]
    counts = moved(
        {"q": ["kept", "new", "far", "gone"]},
        ["q"],
        {"q": ["kept", "gone", *others[:8]]},
        {"q": ["kept", "new", "far", *others[:7], "gone"]},
        {"q": {"kept", "gone", "new"}},
    )
    assert counts == {
        "relevant": 4,
        "missed by two legs": 2,
        "brought in": 2,
        "pushed out": 1,
        "out of pool": 1,
        "from nowhere": 1,
    }


def test_nearness_strata_partition_queries() -> None:
    hops = {
        f"q{number}": Farthest("d", cosine=1 - number / 10, rank=1 + 10 * number)
        for number in range(8)
    }
    strata = by_nearness(hops)
    for kind in ("cosine", "dense"):
        members = [query for name, queries in strata.items() if kind in name for query in queries]
        assert sorted(members) == sorted(hops)
    assert strata["farthest hop nearest third by cosine"] == ("q0", "q1", "q2")
    assert strata["farthest hop below dense rank 50"] == ("q5", "q6", "q7")


def test_study_vectors_match_product_search(tmp_path: Path) -> None:
    dataset = Dataset(
        name="two",
        documents=(
            Document(id="p0", text="She left Oslo."),
            Document(id="p1", text="A large boat."),
        ),
        queries=(Query(id="q", text="Who left Oslo?"),),
        judgements=(Judgement(query="q", document="p0", grade=1),),
    )
    with open_bench(dataset, tmp_path, "bundled") as bench:
        assert ids_of(Vectors(bench).ranking(dataset.queries[0], 2)) == ids_of(dense_leg(bench))


def dense_leg(bench: Bench) -> Ranking:
    question, recipe = analyse_query(bench.dataset.queries[0].text), parse_recipe("legs(dense)")
    return bench.legs.retrieve(bench.trivet.engine, question, Filter(), recipe).rankings[0]


def ids_of(ranking: Ranking) -> list[str]:
    return [one.id for one in ranking.candidates]


def test_figures_of_two_embedders_are_not_mixed(tmp_path: Path) -> None:
    check_same({"manifest": {"embedder": "all-MiniLM-L6-v2/b7510b52f82d"}}, MINILM, tmp_path)
    with pytest.raises(SystemExit, match="was measured with all-MiniLM-L6-v2"):
        check_same({"manifest": {"embedder": "all-MiniLM-L6-v2/b7510b52f82d"}}, "bundled", tmp_path)


def test_figures_have_sign_and_interval() -> None:
    assert [signed(value) for value in (0.0431, -0.1, 0.0001, -0.0001, 1.25)] == [
        "+.043",
        "-.100",
        ".000",
        ".000",
        "+1.250",
    ]
    assert interval({"difference": 0.0431, "low": -0.002, "high": 0.09}) == "+.043 (-.002 to +.090)"
    assert [
        marked({"difference": x, "low": x - 0.01, "high": x + 0.01}) for x in (0.02, 0.0, -0.02)
    ] == [
        "+.020 ▲",
        ".000",
        "-.020 ▼",
    ]
