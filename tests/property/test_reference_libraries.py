"""The lab's measures and statistics match scikit-learn and scipy.

The tests import both libraries, because loading them takes seconds in every process that collects
tests.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.lab_cases import drawn, one, random_case
from trivet.lab.measure.comparison import detectable
from trivet.lab.measure.measures import measure, parse


def second_opinion(name: str, grades: np.ndarray, ranks: np.ndarray) -> float:
    """Compute the measure with scikit-learn from the grades and 1-based ranks of all documents."""
    from sklearn.metrics import (
        coverage_error,
        label_ranking_average_precision_score,
        ndcg_score,
        recall_score,
    )

    one = parse(name)
    relevant, depth = grades > 0, one.depth or len(grades)
    if one.kind.startswith("nDCG"):
        gains = grades if one.kind == "nDCG" else 2**grades - 1
        return float(ndcg_score([gains], [-ranks], k=depth))
    if one.kind == "recall":
        return float(recall_score(relevant, ranks <= depth))
    first = relevant & (ranks == ranks[relevant].min())
    if one.kind == "MRR":
        return float(label_ranking_average_precision_score([first], [-ranks]))
    # How deep in the list the first relevant document, or the last, is.
    return float(coverage_error([first if one.kind == "any" else relevant], [-ranks]) <= depth)


@pytest.mark.parametrize(
    "name",
    [
        "nDCG@10",
        "nDCG",
        "nDCG-exp@10",
        "recall@5",
        "recall@10",
        "MRR",
        "any@1",
        "any@5",
        "all@5",
        "all@25",
    ],
)
def test_measure_matches_scikit_learn(name: str) -> None:
    data, run = random_case(seed=3)
    documents = [document.id for document in data.documents]
    mine = measure(data, run, [name]).per_query[name]
    for query, answer in run.items():
        order = [one for one, _ in sorted(answer, key=lambda pair: (-pair[1], pair[0]))]
        ranks = np.array([order.index(one) + 1 for one in documents])
        grades = np.array([data.grades[query].get(one, 0) for one in documents])
        assert mine[query] == pytest.approx(second_opinion(name, grades, ranks), abs=1e-12), query


def test_interval_matches_scipy_bootstrap() -> None:
    from scipy import stats

    differences = np.array(drawn(200))
    theirs = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval
    mine = one(differences.tolist())
    assert mine.low == pytest.approx(theirs.low, abs=0.002)
    assert mine.high == pytest.approx(theirs.high, abs=0.002)


def test_p_value_matches_scipy_permutation_test() -> None:
    from scipy import stats

    differences = np.array(drawn(60, mean=0.03))
    theirs = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=50_000,
        rng=np.random.default_rng(5),
    ).pvalue
    assert one(differences.tolist()).p == pytest.approx(theirs, abs=0.015)


def test_p_value_of_few_queries_is_exact() -> None:
    from scipy import stats

    differences = [0.3, -0.1, 0.2, 0.05, 0.4, -0.02, 0.1, 0.0]
    theirs = stats.permutation_test(
        (np.array(differences),), np.mean, permutation_type="samples"
    ).pvalue
    assert one(differences).p == pytest.approx(theirs, abs=1e-12)


def test_detectable_difference_matches_the_paired_t_test() -> None:
    from scipy import stats

    differences = np.array(drawn(50))
    spread = np.std(differences, ddof=1)
    expected = (stats.t.ppf(0.975, 49) + stats.t.ppf(0.8, 49)) * spread / math.sqrt(50)
    assert detectable(differences) == pytest.approx(expected)
    # A paired t-test finds a true difference of this size in about four of five samples.
    shift, freedom = expected * math.sqrt(50) / spread, 49
    power = 1 - stats.nct.cdf(stats.t.ppf(0.975, freedom), freedom, shift)
    assert power == pytest.approx(0.8, abs=0.01)
