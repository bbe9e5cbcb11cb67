"""How long the hits are beside the memories that answer: a leg that favours long or short ones shows here first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec

from trivet.analyse import UNSPACED
from trivet.lab.dataset import RELEVANT, Dataset
from trivet.lab.measures import Run

# What an agent or a person looks at.
FIRST_HITS = 10
# Scripts without spaces have about two characters a word.
_word = re.compile(rf"[{UNSPACED}]{{1,2}}|[^\s{UNSPACED}]+")


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """Medians in words: of the first hits of all queries, and of the memories that are relevant to them.

    `ratio` is hits by answers: 1 is fair, 3 means that what is shown is three times as long as what was wanted.
    """

    hits: float
    answers: float
    ratio: float


class LengthReport(msgspec.Struct, frozen=True, kw_only=True):
    """None where nothing was found or nothing is relevant."""

    overall: Lengths | None
    by_stratum: Mapping[str, Lengths | None] = {}


def words_in(text: str) -> int:
    return sum(1 for _ in _word.finditer(text))


def lengths(dataset: Dataset, run: Run, relevant_from: int = RELEVANT) -> LengthReport:
    """Each hit and each answer counts once for every query it belongs to; queries without an answer do not count."""
    words = {document.id: words_in(document.text) for document in dataset.documents}
    asked = [query for query in dataset.grades if query not in set(dataset.unanswerable)]
    hits = {query: [words[document] for document, _ in run.get(query, ())[:FIRST_HITS]] for query in asked}
    answers = {
        query: [words[document] for document, grade in dataset.grades[query].items() if grade >= relevant_from]
        for query in asked
    }
    strata = {name: [query for query in queries if query in hits] for name, queries in dataset.strata.items()}
    return LengthReport(
        overall=_over(asked, hits, answers),
        by_stratum={name: _over(queries, hits, answers) for name, queries in strata.items()},
    )


def compared(hits: Sequence[int], answers: Sequence[int]) -> Lengths | None:
    if not hits or not answers:
        return None
    found, wanted = float(median(hits)), float(median(answers))
    return Lengths(hits=found, answers=wanted, ratio=round(found / wanted, 4)) if wanted else None


def _over(
    queries: Iterable[str], hits: Mapping[str, Sequence[int]], answers: Mapping[str, Sequence[int]]
) -> Lengths | None:
    chosen = list(queries)
    return compared([n for query in chosen for n in hits[query]], [n for query in chosen for n in answers[query]])
