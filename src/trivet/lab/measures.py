"""How good a run is: per query, per stratum and overall. Measured by ir_measures on lists without ties."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from trivet.errors import InvalidInput
from trivet.lab.naming import Measure, parse
from trivet.lab.values import RELEVANT, Dataset

Run = Mapping[str, Sequence[tuple[str, float]]]
Grades = Mapping[str, Mapping[str, int]]
Lists = Mapping[str, list[str]]
Values = dict[str, float]

STANDARD: tuple[str, ...] = (
    "recall@5",
    "recall@10",
    "nDCG@10",
    "MRR",
    "any@5",
    "all@5",
    "judged@10",
    "condensed-recall@5",
    "condensed-recall@10",
    "condensed-nDCG@10",
)

# What ir_measures calls them.
COUNTERPARTS: Mapping[str, str] = {
    "recall": "R",
    "nDCG": "nDCG",
    "MRR": "RR",
    "any": "Success",
    "judged": "Judged",
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Values by measure and query, and their means. `unanswerable` queries have no value and count in no mean."""

    per_query: Mapping[str, Mapping[str, float]]
    overall: Mapping[str, float]
    by_stratum: Mapping[str, Mapping[str, float]]
    strata: Mapping[str, tuple[str, ...]]
    unanswerable: tuple[str, ...] = ()


def measure(dataset: Dataset, run: Run, measures: Iterable[str | Measure] = STANDARD) -> Measured:
    """Measures a run. Ties are broken by document id; a query the run does not answer scores 0."""
    chosen = {str(one): one for one in (parse(one) if isinstance(one, str) else one for one in measures)}
    unanswerable = frozenset(dataset.unanswerable)
    grades = {query: judged for query, judged in dataset.grades.items() if query not in unanswerable}
    if not grades:
        raise InvalidInput(f"Dataset {dataset.name!r} has no query with a relevant document: nothing can be measured.")
    lists = ranked(dataset, run)
    condensed = {query: [one for one in lists[query] if one in judged] for query, judged in grades.items()}
    values = {
        **_values([one for one in chosen.values() if not one.condensed], grades, lists),
        **_values([one for one in chosen.values() if one.condensed], grades, condensed),
    }
    per_query = {name: values[one] for name, one in chosen.items()}
    strata = {
        name: kept
        for name, queries in dataset.strata.items()
        if (kept := tuple(query for query in queries if query not in unanswerable))
    }
    return Measured(
        per_query=per_query,
        overall=_means(per_query, grades),
        by_stratum={name: _means(per_query, queries) for name, queries in strata.items()},
        strata=strata,
        unanswerable=dataset.unanswerable,
    )


def ranked(dataset: Dataset, run: Run) -> dict[str, list[str]]:
    """The documents of every query of the dataset in order of score, ties by id; the run is checked on the way."""
    known = {document.id for document in dataset.documents}
    strangers = [query for query in run if query not in dataset.grades]
    if strangers:
        raise InvalidInput(f"The run answers query {strangers[0]!r}, which dataset {dataset.name!r} does not have.")
    return {query: _ordered(query, run.get(query, ()), known) for query in dataset.grades}


def _ordered(query: str, answer: Sequence[tuple[str, float]], known: set[str]) -> list[str]:
    seen: set[str] = set()
    for document, score in answer:
        if not math.isfinite(score):
            raise InvalidInput(f"The run gives query {query!r} and document {document!r} the score {score}.")
        if document not in known:
            raise InvalidInput(f"The run gives query {query!r} the document {document!r}, which the corpus has not.")
        if document in seen:
            raise InvalidInput(f"The run gives query {query!r} the document {document!r} twice.")
        seen.add(document)
    return [document for document, _ in sorted(answer, key=lambda pair: (-pair[1], pair[0]))]


def _values(measures: Sequence[Measure], grades: Grades, lists: Lists) -> dict[Measure, Values]:
    values: dict[Measure, Values] = {}
    for one in measures:
        if one.kind == "all":
            values[one] = {query: _all_found(judged, lists[query][: one.depth]) for query, judged in grades.items()}
    exponential = [one for one in measures if one.kind == "nDCG-exp"]
    gains = {query: {key: 2**grade - 1 for key, grade in judged.items()} for query, judged in grades.items()}
    values.update(_by_library(exponential, gains, lists))
    values.update(_by_library([one for one in measures if one.kind in COUNTERPARTS], grades, lists))
    return values


def _all_found(judged: Mapping[str, int], answer: Sequence[str]) -> float:
    """1 if every relevant document is in the list. ir_measures has no such measure."""
    relevant = {document for document, grade in judged.items() if grade >= RELEVANT}
    return float(relevant <= set(answer))


def _by_library(measures: Sequence[Measure], grades: Grades, lists: Lists) -> dict[Measure, Values]:
    if not measures:
        return {}
    import ir_measures  # here, for it costs the command line a tenth of a second

    # Ranks as scores: no two are equal, so the library's own way to break ties cannot change the order.
    # A query without an answer is left out, since the share of judged documents in nothing is undefined.
    scores = {
        query: {document: float(-rank) for rank, document in enumerate(lists[query])}
        for query in grades
        if lists[query]
    }
    counterparts = {_counterpart(one): one for one in measures}
    values: dict[Measure, Values] = {one: dict.fromkeys(grades, 0.0) for one in measures}
    for metric in ir_measures.iter_calc(list(counterparts), grades, scores):
        values[counterparts[metric.measure]][metric.query_id] = float(metric.value)
    return values


def _counterpart(one: Measure) -> Any:
    import ir_measures

    measure = getattr(ir_measures, COUNTERPARTS.get(one.kind, "nDCG"))
    return measure if one.depth is None else measure @ one.depth


def _means(per_query: Mapping[str, Values], queries: Iterable[str]) -> dict[str, float]:
    chosen = list(queries)
    return {name: fmean(values[query] for query in chosen) for name, values in per_query.items()}
