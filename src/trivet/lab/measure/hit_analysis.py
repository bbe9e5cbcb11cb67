"""Lengths of hits and answers; overlap of two retrievers, and rules on whether to fuse them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Literal

import msgspec
import numpy as np

from trivet.analyse import UNSPACED
from trivet.lab.datasets.dataset import RELEVANT, Dataset
from trivet.lab.measure.comparison import CONFIDENCE, RESAMPLES, bootstrap_means, intervals
from trivet.lab.measure.measures import Run

# Hits an agent or person looks at.
FIRST_HITS = 10
# Scripts without spaces have about two characters per word.
_word = re.compile(rf"[{UNSPACED}]{{1,2}}|[^\s{UNSPACED}]+")


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """Median words of first hits and of relevant memories; a `ratio` of 1 is fair."""

    hits: float
    answers: float
    ratio: float


class LengthReport(msgspec.Struct, frozen=True, kw_only=True):
    overall: Lengths | None
    by_stratum: Mapping[str, Lengths | None] = {}


def count_words(text: str) -> int:
    return sum(1 for _ in _word.finditer(text))


def lengths(dataset: Dataset, run: Run, relevant_from: int = RELEVANT) -> LengthReport:
    """Count each hit and answer once per query; skip unanswerable queries."""
    words = {document.id: count_words(document.text) for document in dataset.documents}
    asked = [query for query in dataset.grades if query not in set(dataset.unanswerable)]
    hits = {
        query: [words[document] for document, _ in run.get(query, ())[:FIRST_HITS]]
        for query in asked
    }
    answers = {
        query: [
            words[document]
            for document, grade in dataset.grades[query].items()
            if grade >= relevant_from
        ]
        for query in asked
    }
    strata = {
        name: [query for query in queries if query in hits]
        for name, queries in dataset.strata.items()
    }
    return LengthReport(
        overall=_over(asked, hits, answers),
        by_stratum={name: _over(queries, hits, answers) for name, queries in strata.items()},
    )


def length_cells(found: Sequence[Lengths | None], unknown: str) -> tuple[str, ...]:
    answers = next((f"{one.answers:g}" for one in found if one), unknown)
    sides = ((f"{one.hits:g}", f"{one.ratio:.2f}") if one else (unknown, unknown) for one in found)
    return (answers, *(text for side in sides for text in side))


def compare_lengths(hits: Sequence[int], answers: Sequence[int]) -> Lengths | None:
    if not hits or not answers:
        return None
    found, wanted = float(median(hits)), float(median(answers))
    return Lengths(hits=found, answers=wanted, ratio=round(found / wanted, 4)) if wanted else None


def _over(
    queries: Iterable[str], hits: Mapping[str, Sequence[int]], answers: Mapping[str, Sequence[int]]
) -> Lengths | None:
    chosen = list(queries)
    return compare_lengths(
        [n for query in chosen for n in hits[query]],
        [n for query in chosen for n in answers[query]],
    )


# Worth fusing: both find something for a smaller share of queries than this, and the union's recall
# exceeds the better one's by at least this.
BOTH_BELOW = 0.60
GAIN_FROM = 0.15
# Above this share, fusion brings too little for its time.
BOTH_ABOVE = 0.70


class Share(msgspec.Struct, frozen=True):
    mean: float
    low: float
    high: float


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of queries with a relevant hit in the first k of Trivet, the member, both or neither.

    `recall_union` bounds what a fusion can reach.
    """

    k: int
    queries: int
    both: Share
    only_trivet: Share
    only_member: Share
    neither: Share
    recall_trivet: Share
    recall_member: Share
    recall_union: Share
    gain: Share


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a trial; `sure` if the intervals lie on the same side of the bounds."""

    verdict: Literal["worth a trial", "not worth its time", "not settled"]
    because: str
    sure: bool

    @property
    def sentence(self) -> str:
        doubt = "" if self.sure else " There are too few queries to be sure."
        return f"By the rules of overlap: {self.verdict}. {self.because}.{doubt}"


def overlap(dataset: Dataset, trivet: Run, member: Run, k: int) -> Overlap:
    rows = []
    for query, judged in dataset.grades.items():
        relevant = {document for document, grade in judged.items() if grade >= RELEVANT}
        if not relevant:
            continue
        ours, theirs = (
            {document for document, _ in run[query][:k]} & relevant for run in (trivet, member)
        )
        hit = (bool(ours), bool(theirs))
        found = [len(part) / len(relevant) for part in (ours, theirs, ours | theirs)]
        rows.append(
            [
                hit == (True, True),
                hit == (True, False),
                hit == (False, True),
                hit == (False, False),
                *found,
            ]
        )
    columns = np.array(rows, dtype=np.float64)
    better = 4 if columns[:, 4].mean() >= columns[:, 5].mean() else 5
    columns = np.column_stack([columns, columns[:, 6] - columns[:, better]])
    bounds = intervals(bootstrap_means(columns, RESAMPLES, 0), CONFIDENCE)
    shares = [
        Share(float(mean), *bound) for mean, bound in zip(columns.mean(axis=0), bounds, strict=True)
    ]
    both, only_trivet, only_member, neither, ours_, theirs_, union, gain = shares
    return Overlap(
        k=k,
        queries=len(rows),
        both=both,
        only_trivet=only_trivet,
        only_member=only_member,
        neither=neither,
        recall_trivet=ours_,
        recall_member=theirs_,
        recall_union=union,
        gain=gain,
    )


def apply_fusion_rules(found: Overlap) -> Rules:
    both, gain = found.both, found.gain
    shared = f"Both find something for {both.mean:.0%} of the queries"
    more = f"together they recall {gain.mean:.3f} more than the better one"
    if both.mean > BOTH_ABOVE:
        because = f"{shared}, and above {BOTH_ABOVE:.0%} a fusion gains little"
        return Rules(verdict="not worth its time", because=because, sure=both.low > BOTH_ABOVE)
    if both.mean < BOTH_BELOW and gain.mean >= GAIN_FROM:
        because = f"{shared}, fewer than {BOTH_BELOW:.0%}, and {more}, at least {GAIN_FROM:.2f}"
        return Rules(
            verdict="worth a trial",
            because=because,
            sure=both.high < BOTH_BELOW and gain.low >= GAIN_FROM,
        )
    wanted = f"worth a trial is fewer than {BOTH_BELOW:.0%} and at least {GAIN_FROM:.2f}"
    return Rules(verdict="not settled", because=f"{shared}, and {more}; {wanted}", sure=True)
