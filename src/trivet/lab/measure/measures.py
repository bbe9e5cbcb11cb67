"""Retrieval measures with the values of trec_eval; names such as `nDCG@10` parse and print back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import RELEVANT, Dataset

# Names other tools use, in lower case, and ours.
KINDS = {
    "recall": "recall",
    "r": "recall",
    "ndcg": "nDCG",
    "ndcg-exp": "nDCG-exp",
    "mrr": "MRR",
    "rr": "MRR",
    "any": "any",
    "success": "any",
    "hit": "any",
    "all": "all",
    "judged": "judged",
}
NEEDS_DEPTH = frozenset({"recall", "any", "all", "judged"})
CONDENSED = "condensed-"
NAME = re.compile(
    r"(?P<condensed>condensed-)?(?P<kind>[a-z-]+?)(?:@(?P<depth>[1-9][0-9]{0,5}))?", re.IGNORECASE
)


@dataclass(frozen=True)
class Measure:
    """A measure and its depth; `condensed` removes unjudged documents first."""

    kind: str
    depth: int | None = None
    condensed: bool = False

    def __str__(self) -> str:
        depth = "" if self.depth is None else f"@{self.depth}"
        return f"{CONDENSED if self.condensed else ''}{self.kind}{depth}"


def parse(name: str) -> Measure:
    """Parse a name in any case; `R@5`, `RR` and `Success@5` work too."""
    match = NAME.fullmatch(name.strip())
    kind = KINDS.get(match["kind"].lower()) if match else None
    if match is None or kind is None:
        known = ", ".join(dict.fromkeys(KINDS.values()))
        raise InvalidInput(
            f"There is no measure {name!r}. Known: {known}, with a depth as in nDCG@10; "
            "condensed-nDCG@10."
        )
    if match["depth"] is None and kind in NEEDS_DEPTH:
        raise InvalidInput(f"Measure {name!r} needs a depth, such as {kind}@5.")
    if match["condensed"] and kind == "judged":
        raise InvalidInput(
            f"Measure {name!r} is always 1: a condensed list holds judged documents only."
        )
    return Measure(kind, int(match["depth"]) if match["depth"] else None, bool(match["condensed"]))


Run = Mapping[str, Sequence[tuple[str, float]]]
Grades = Mapping[str, Mapping[str, int]]
Lists = Mapping[str, list[str]]
Values = dict[str, float]

STANDARD_MEASURES: tuple[str, ...] = (
    "recall@5",
    "recall@10",
    "nDCG@10",
    "MRR",
    "any@1",
    "any@5",
    "all@5",
    "judged@10",
    "condensed-recall@5",
    "condensed-recall@10",
    "condensed-nDCG@10",
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Values by measure and query, and means, without `unanswerable` queries."""

    per_query: Mapping[str, Mapping[str, float]]
    overall: Mapping[str, float]
    by_stratum: Mapping[str, Mapping[str, float]]
    strata: Mapping[str, tuple[str, ...]]
    unanswerable: tuple[str, ...] = ()


def measure(
    dataset: Dataset, run: Run, measures: Iterable[str | Measure] = STANDARD_MEASURES
) -> Measured:
    """Measure a run; document ids break ties, and a missing query scores 0."""
    chosen = {
        str(one): one for one in (parse(one) if isinstance(one, str) else one for one in measures)
    }
    unanswerable = frozenset(dataset.unanswerable)
    grades = {
        query: judged for query, judged in dataset.grades.items() if query not in unanswerable
    }
    if not grades:
        raise InvalidInput(
            f"Dataset {dataset.name!r} has no query with a relevant document, so nothing can be "
            "measured."
        )
    lists = ranked(dataset, run)
    condensed = {
        query: [one for one in lists[query] if one in judged] for query, judged in grades.items()
    }
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
        overall=means(per_query, grades),
        by_stratum={name: means(per_query, queries) for name, queries in strata.items()},
        strata=strata,
        unanswerable=dataset.unanswerable,
    )


def ranked(dataset: Dataset, run: Run) -> dict[str, list[str]]:
    known = {document.id for document in dataset.documents}
    strangers = [query for query in run if query not in dataset.grades]
    if strangers:
        raise InvalidInput(
            f"The run answers query {strangers[0]!r}, which dataset {dataset.name!r} does not have."
        )
    return {query: _ordered(query, run.get(query, ()), known) for query in dataset.grades}


def _ordered(query: str, answer: Sequence[tuple[str, float]], known: set[str]) -> list[str]:
    seen: set[str] = set()
    for document, score in answer:
        if not math.isfinite(score):
            raise InvalidInput(
                f"The run gives query {query!r} and document {document!r} the score {score}."
            )
        if document not in known:
            raise InvalidInput(
                f"The run gives query {query!r} the document {document!r}, which is not in the "
                "corpus."
            )
        if document in seen:
            raise InvalidInput(f"The run gives query {query!r} the document {document!r} twice.")
        seen.add(document)
    return [document for document, _ in sorted(answer, key=lambda pair: (-pair[1], pair[0]))]


def _values(measures: Sequence[Measure], grades: Grades, lists: Lists) -> dict[Measure, Values]:
    return {
        one: {
            query: FORMULAS[one.kind](judged, lists[query][: one.depth], one.depth)
            for query, judged in grades.items()
        }
        for one in measures
    }


def _relevant(judged: Mapping[str, int]) -> set[str]:
    return {document for document, grade in judged.items() if grade >= RELEVANT}


def _recall(judged: Mapping[str, int], answer: Sequence[str], depth: int | None) -> float:
    relevant = _relevant(judged)
    return len(relevant.intersection(answer)) / len(relevant)


def _any(judged: Mapping[str, int], answer: Sequence[str], depth: int | None) -> float:
    return float(not _relevant(judged).isdisjoint(answer))


def _all(judged: Mapping[str, int], answer: Sequence[str], depth: int | None) -> float:
    return float(_relevant(judged) <= set(answer))


def _reciprocal_rank(judged: Mapping[str, int], answer: Sequence[str], depth: int | None) -> float:
    relevant = _relevant(judged)
    return next((1 / rank for rank, document in enumerate(answer, 1) if document in relevant), 0.0)


def _judged(judged: Mapping[str, int], answer: Sequence[str], depth: int | None) -> float:
    return sum(document in judged for document in answer) / len(answer) if answer else 0.0


def _ndcg(judged: Mapping[str, int], answer: Sequence[str], depth: int | None) -> float:
    ideal = sorted(judged.values(), reverse=True)[:depth]
    return _gain(judged.get(document, 0) for document in answer) / _gain(ideal)


def _ndcg_exponential(judged: Mapping[str, int], answer: Sequence[str], depth: int | None) -> float:
    return _ndcg({document: 2**grade - 1 for document, grade in judged.items()}, answer, depth)


def _gain(grades: Iterable[int]) -> float:
    return sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


FORMULAS: Mapping[str, Callable[[Mapping[str, int], Sequence[str], int | None], float]] = {
    "recall": _recall,
    "nDCG": _ndcg,
    "nDCG-exp": _ndcg_exponential,
    "MRR": _reciprocal_rank,
    "any": _any,
    "all": _all,
    "judged": _judged,
}


def means(per_query: Mapping[str, Mapping[str, float]], queries: Iterable[str]) -> dict[str, float]:
    chosen = list(queries)
    return {name: fmean(values[query] for query in chosen) for name, values in per_query.items()}
