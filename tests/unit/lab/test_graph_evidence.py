"""The helpers of the graph's evidence: the rule of choice, what counts as moved, and triples that enter a store."""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies"))

import arms
from embedder import check_same
from graph_arms import FILES, Farthest, by_nearness, moved, open_with, size_of_graph, usable
from graph_evidence import chosen_on, is_unsure, leave_one_out, over_corpora, verdict
from tables import chance, interval, marked, signed

from trivet.analyse import analyse_query
from trivet.lab.bench import Bench, open_bench
from trivet.lab.dataset import Dataset, Document, Judgement, Query
from trivet.lab.significance import holm
from trivet.search.recipe import parse_recipe
from trivet.types import Filter, Ranking


def row(difference: float, reach: float = 0.001, p: float = 0.5) -> dict[str, Any]:
    figures = {"difference": difference, "low": difference - reach, "high": difference + reach, "p": p}
    return {"nDCG@10": figures}


def test_an_arm_that_harms_one_corpus_is_not_chosen_however_much_it_gains() -> None:
    sweep = {"a": {"strong": row(0.2), "mild": row(0.01)}, "b": {"strong": row(-0.02), "mild": row(0.0)}}
    assert chosen_on(sweep, ["a", "b"], ["strong", "mild"]) == "mild"
    assert chosen_on(sweep, ["a"], ["strong", "mild"]) == "strong"


def test_a_loss_that_chance_may_explain_does_not_bar_an_arm() -> None:
    sweep = {"a": {"unsure": row(-0.02, reach=0.03), "none": row(-0.05, reach=0.2)}}
    assert chosen_on(sweep, ["a"], ["unsure", "none"]) == "unsure"
    assert chosen_on(sweep, ["a"], ["unsure", "none"], is_unsure) is None


def test_where_every_arm_harms_nothing_is_chosen() -> None:
    sweep = {"a": {"one": row(-0.1)}, "b": {"one": row(-0.1)}}
    assert chosen_on(sweep, ["a", "b"], ["one"]) is None
    assert leave_one_out(sweep, ["one"])["a"] == {"chosen": None}


def test_a_corpus_has_no_say_in_what_is_tested_on_it() -> None:
    sweep = {
        "a": {"x": row(0.5), "y": row(0.0)},
        "b": {"x": row(0.0), "y": row(0.1)},
        "c": {"x": row(0.0), "y": row(0.1)},
    }
    folds = leave_one_out(sweep, ["x", "y"])
    assert (folds["a"]["chosen"], folds["a"]["best here"]) == ("y", "x")
    assert folds["b"]["chosen"] == folds["c"]["chosen"] == "x"


def test_tests_are_corrected_over_the_corpora() -> None:
    sweep = {name: {"x": row(0.1, p=p)} for name, p in (("a", 0.01), ("b", 0.04), ("c", 0.5))}
    corrected = over_corpora(sweep, "x", ["nDCG@10"])
    assert [corrected[name]["nDCG@10"] for name in sweep] == pytest.approx(holm([0.01, 0.04, 0.5]))


@pytest.mark.parametrize(
    ("figures", "p", "said"),
    [
        (row(0.05), 0.001, "wins"),
        (row(-0.05), 0.001, "hurts"),
        (row(-0.003), 0.001, "loses a little"),
        (row(0.0), 0.9, "neutral"),
        (row(0.0, reach=0.02), 0.9, "neutral, but a loss above 0.005 is not ruled out"),
    ],
)
def test_a_verdict_says_no_more_than_the_interval_allows(figures: dict[str, Any], p: float, said: str) -> None:
    assert verdict(figures, p) == said


def test_what_entered_and_left_the_first_ten_is_counted_by_where_it_came_from() -> None:
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


def test_nearness_puts_every_query_into_one_third_and_one_range_of_ranks() -> None:
    hops = {f"q{number}": Farthest("d", cosine=1 - number / 10, rank=1 + 10 * number) for number in range(8)}
    strata = by_nearness(hops)
    for kind in ("cosine", "dense"):
        members = [query for name, queries in strata.items() if kind in name for query in queries]
        assert sorted(members) == sorted(hops)
    assert strata["farthest hop nearest third by cosine"] == ("q0", "q1", "q2")
    assert strata["farthest hop below dense rank 50"] == ("q5", "q6", "q7")


def test_triples_that_no_graph_can_take_are_counted_not_kept() -> None:
    given = [["Ada", "wrote", "Notes"], ["Ada", "wrote"], ["Ada", "is", ["x"]], "Ada", ["!!!", "is", "Ada"]]
    kept, counts = usable(given)
    assert [(one.subject, one.object) for one in kept] == [("Ada", "Notes")]
    assert counts == {"kept": 1, "not three texts": 3, "a name of nothing, or too long": 1}


def test_given_triples_replace_what_the_rules_found_but_for_titles(tmp_path: Path) -> None:
    """`Oslo` stands in both texts for the rules; the triples speak of ships, in lower case, which no rule would see."""
    documents = (
        Document(id="p0", title="Ada Berg", text="She left Oslo. It was a small boat."),
        Document(id="p1", title="Carl Dahl", text="He came from Oslo by a large boat."),
    )
    dataset = Dataset(
        name="hotpotqa",
        documents=documents,
        queries=(Query(id="q", text="Who is Ada Berg?"),),
        judgements=(Judgement(query="q", document="p0", grade=1),),
    )
    entries = [
        {"passage": f"{one.title}\n{one.text}", "extracted_triples": [[one.title, "has", "boat"], ["broken"]]}
        for one in documents
    ]
    (tmp_path / "data" / "multihop").mkdir(parents=True)
    file = tmp_path / "data" / "multihop" / f"{FILES['hotpotqa']}.gz"
    file.write_bytes(gzip.compress(json.dumps({"docs": entries, "cost": float("nan")}).encode()))
    cache, folder = tmp_path / "cache", tmp_path / "copy"
    folder.mkdir()
    with open_bench(dataset, cache, "stock") as bench:
        before = concepts_of(bench)
        assert ids_of(arms.Vectors(bench).ranking(dataset.queries[0], 2)) == ids_of(dense_leg(bench))
    opened, counts = open_with("triples", dataset, cache, folder, tmp_path / "data", "stock")
    with opened:
        assert concepts_of(opened) == {"adaberg", "carldahl", "boat"}
        assert size_of_graph(opened) == {"mentions": 4, "concepts": 3, "shared concepts": 1}
    assert counts == {"kept": 2, "not three texts": 2}
    with open_bench(dataset, cache, "stock") as bench:
        assert concepts_of(bench) == before == {"adaberg", "berg", "carldahl", "dahl", "oslo"}


def dense_leg(bench: Bench) -> Ranking:
    question, recipe = analyse_query(bench.dataset.queries[0].text), parse_recipe("legs(dense)")
    return bench.legs.retrieve(bench.trivet.engine, question, Filter(), recipe).rankings[0]


def ids_of(ranking: Ranking) -> list[str]:
    return [one.id for one in ranking.candidates]


def test_figures_of_two_embedders_never_share_a_file(tmp_path: Path) -> None:
    check_same({"manifest": {"embedder": "all-MiniLM-L6-v2/b7510b52f82d"}}, "stock", tmp_path)
    with pytest.raises(SystemExit, match="was measured with all-MiniLM-L6-v2"):
        check_same({"manifest": {"embedder": "all-MiniLM-L6-v2/b7510b52f82d"}}, "bundled", tmp_path)


def concepts_of(bench: Bench) -> set[str]:
    connection = sqlite3.connect(bench.trivet.settings.path)
    names = {name for (name,) in connection.execute("SELECT name FROM concept")}
    connection.close()
    return names


def test_figures_are_written_with_sign_and_interval() -> None:
    assert [signed(value) for value in (0.0431, -0.1, 0.0001, -0.0001, 1.25)] == [
        "+.043",
        "-.100",
        ".000",
        ".000",
        "+1.250",
    ]
    assert [chance(p) for p in (0.0001, 0.04, 1.0)] == ["< .001", ".040", "1.000"]
    assert interval({"difference": 0.0431, "low": -0.002, "high": 0.09}) == "+.043 (-.002 to +.090)"
    assert [marked({"difference": x, "low": x - 0.01, "high": x + 0.01}) for x in (0.02, 0.0, -0.02)] == [
        "+.020 ▲",
        ".000",
        "-.020 ▼",
    ]
