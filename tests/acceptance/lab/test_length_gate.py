"""Long memories do not crowd out short ones: shown hits are about as long as the answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trivet.lab.datasets.dataset import Dataset
from trivet.lab.datasets.plain_layout import mixed
from trivet.lab.measure.bench import open_bench
from trivet.lab.measure.gate import LENGTH_RATIO
from trivet.lab.measure.hit_analysis import Lengths, lengths
from trivet.lab.measure.run import run_arm

STORE = "travel-cook"
ANSWERS_FROM = 2


def one_store(dataset: Dataset) -> Dataset:
    queries = tuple(query for query in dataset.queries if query.scope == STORE)
    ids = {query.id for query in queries}
    return replace(
        dataset,
        documents=tuple(document for document in dataset.documents if document.scope == STORE),
        queries=queries,
        judgements=tuple(one for one in dataset.judgements if one.query in ids),
    )


def test_hits_are_as_long_as_answers(tmp_path: Path) -> None:
    dataset = one_store(mixed("dev"))
    with open_bench(dataset, tmp_path) as bench:
        fair, unfair = (
            lengths(dataset, run_arm(bench, recipe).run, ANSWERS_FROM).overall
            for recipe in ("default", "chance(0) | walk(even=0)")
        )
    assert isinstance(fair, Lengths)
    assert isinstance(unfair, Lengths)
    assert 1 / LENGTH_RATIO < fair.ratio < LENGTH_RATIO
    assert fair.hits < unfair.hits, "without the correction for chance, long memories come first"
