"""Figures by group, stratum and set, with intervals, and forbidden files found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import msgspec
import numpy as np

from trivet.lab.code.search_runs import FILES, Ranked
from trivet.lab.code.sets import CodeSet
from trivet.lab.datasets.dataset import RELEVANT, Dataset, Document, Judgement, Query
from trivet.lab.measure.comparison import (
    CONFIDENCE,
    RESAMPLES,
    Comparison,
    bootstrap_means,
    compare,
    intervals,
    paired,
)
from trivet.lab.measure.measures import Measured, Values, means, measure

MEASURES = ("nDCG@10", "recall@5")
# Generated look-ups of symbols: easy by construction, so they are not in the headline.
GENERATED_STRATA = frozenset({"symbol-auto", "symbol-qualified", "symbol-spoken"})
# Strata of semble's annotations.
ANNOTATED = frozenset({"nl", "arch", "symbol"})
HEADLINE, OWN, ALL = "headline", "semble's own", "all"
GROUPS = (HEADLINE, OWN, ALL)
MEANING = (
    f"`{HEADLINE}` is every query except the generated look-ups "
    f"({', '.join(sorted(GENERATED_STRATA))}), which are easy by construction; "
    f"`{OWN}` are the strata of semble's annotations ({', '.join(sorted(ANNOTATED))})."
)


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """Means over queries and sets, each with a 95 % bootstrap interval."""

    mean: float
    low: float
    high: float
    by_set: float
    by_set_low: float
    by_set_high: float


class Group(msgspec.Struct, frozen=True, kw_only=True):
    queries: int
    sets: int
    measures: Mapping[str, Mean]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Candidate minus base, paired by query; the second interval is over sets."""

    queries: int
    difference: float
    low: float
    high: float
    corrected_p: float
    wins: int
    losses: int
    ties: int
    by_set: float
    by_set_low: float
    by_set_high: float


class Forbidden(msgspec.Struct, frozen=True, kw_only=True):
    """Queries with a forbidden file, and with one among the first ten."""

    queries: int
    broken: int
    found: tuple[str, ...]


Run = Mapping[str, Ranked]
SetOf = Mapping[str, str]


def measured(sets: Sequence[CodeSet], run: Run) -> Measured:
    values = measure(_dataset(sets, run), run, MEASURES)
    groups = _groups(values)
    return replace(
        values,
        strata=groups,
        by_stratum={name: means(values.per_query, ids) for name, ids in groups.items()},
    )


def sets_of(sets: Sequence[CodeSet]) -> SetOf:
    return {query.id: one.name for one in sets for query in one.queries}


def group_figures(values: Measured, of: SetOf) -> dict[str, Group]:
    return {name: _group(values, queries, of) for name, queries in values.strata.items()}


def set_figures(values: Measured, of: SetOf) -> dict[str, dict[str, dict[str, float]]]:
    figures: dict[str, dict[str, dict[str, float]]] = {
        name: {} for name in dict.fromkeys(of.values())
    }
    for group, queries in values.strata.items():
        for name, ids in _by_set(queries, of).items():
            figures[name][group] = {"queries": len(ids), **means(values.per_query, ids)}
    return figures


def differences(base: Measured, candidate: Measured, of: SetOf) -> dict[str, dict[str, Difference]]:
    compared = compare(base, candidate, MEASURES).by_stratum
    return {
        group: {
            name: _difference(base, candidate, group, name, one, of) for name, one in found.items()
        }
        for group, found in compared.items()
    }


def forbidden(sets: Sequence[CodeSet], run: Run) -> Forbidden:
    judged = {query: grades for one in sets for query, grades in one.grades.items()}
    barred = {
        query: {path for path, grade in judged[query].items() if grade < RELEVANT}
        for query in judged
    }
    found = {
        query: [
            f"{query}: {path} at rank {rank}"
            for rank, (path, _) in enumerate(run[query][:FILES], 1)
            if path in no
        ]
        for query, no in barred.items()
        if no
    }
    return Forbidden(
        queries=len(found),
        broken=sum(1 for lines in found.values() if lines),
        found=tuple(line for query in sorted(found) for line in found[query]),
    )


def _dataset(sets: Sequence[CodeSet], run: Run) -> Dataset:
    judgements = tuple(
        Judgement(query=query, document=path, grade=grade)
        for one in sets
        for query, grades in one.grades.items()
        for path, grade in grades.items()
    )
    paths = {path for files in run.values() for path, _ in files} | {
        row.document for row in judgements
    }
    queries = tuple(
        Query(id=query.id, text=query.text, stratum=query.stratum)
        for one in sets
        for query in one.queries
    )
    documents = tuple(Document(id=path, text=path) for path in sorted(paths))
    return Dataset(name="code", documents=documents, queries=queries, judgements=judgements)


def _groups(values: Measured) -> dict[str, tuple[str, ...]]:
    every = tuple(values.per_query[MEASURES[0]])
    made_up = {query for name in GENERATED_STRATA for query in values.strata.get(name, ())}
    own = {query for name in ANNOTATED for query in values.strata.get(name, ())}
    groups = {
        HEADLINE: tuple(query for query in every if query not in made_up),
        OWN: tuple(query for query in every if query in own),
        ALL: every,
        **values.strata,
    }
    return {name: queries for name, queries in groups.items() if queries}


def _group(values: Measured, queries: Sequence[str], of: SetOf) -> Group:
    sets = _by_set(queries, of)
    by_query = [[values.per_query[name][query] for name in MEASURES] for query in queries]
    by_set = [list(means(values.per_query, ids).values()) for ids in sets.values()]
    over_queries, over_sets = _bounded(by_query), _bounded(by_set)
    return Group(
        queries=len(queries),
        sets=len(sets),
        measures={
            name: Mean(
                mean=one[0],
                low=one[1],
                high=one[2],
                by_set=other[0],
                by_set_low=other[1],
                by_set_high=other[2],
            )
            for name, one, other in zip(MEASURES, over_queries, over_sets, strict=True)
        },
    )


def _bounded(rows: Sequence[Sequence[float]]) -> list[tuple[float, float, float]]:
    columns = np.array(rows)
    bounds = intervals(bootstrap_means(columns, RESAMPLES, 0), CONFIDENCE)
    return [(float(mean), *bound) for mean, bound in zip(columns.mean(axis=0), bounds, strict=True)]


def _difference(
    base: Measured, candidate: Measured, group: str, name: str, one: Comparison, of: SetOf
) -> Difference:
    queries = base.strata[group]
    before, after = (_set_means(side.per_query[name], queries, of) for side in (base, candidate))
    (over_sets,) = paired({name: before}, {name: after})
    return Difference(
        queries=one.queries,
        difference=one.difference,
        low=one.low,
        high=one.high,
        corrected_p=one.corrected_p,
        wins=one.wins,
        losses=one.losses,
        ties=one.ties,
        by_set=over_sets.difference,
        by_set_low=over_sets.low,
        by_set_high=over_sets.high,
    )


def _set_means(values: Mapping[str, float], queries: Sequence[str], of: SetOf) -> Values:
    return {
        name: fmean(values[query] for query in ids) for name, ids in _by_set(queries, of).items()
    }


def _by_set(queries: Sequence[str], of: SetOf) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for query in queries:
        found.setdefault(of[query], []).append(query)
    return found
