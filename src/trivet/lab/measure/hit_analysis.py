"""How long the hits are beside the memories that answer: a leg that favours long or short ones shows here first.

Where the hits of two ways to retrieve overlap, and what the rules for fusing say of it.

The rules are those that Trivet began with: fuse what errs in different places. They look at the shares of queries for
which both, one or neither find something relevant, and at the recall of both lists together, the most that any fusion
of the two could reach. They say whether a trial is worth it; what it is worth, a measured fusion says.
"""

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


def count_words(text: str) -> int:
    return sum(1 for _ in _word.finditer(text))


def lengths(dataset: Dataset, run: Run, relevant_from: int = RELEVANT) -> LengthReport:
    """Each hit and each answer counts once for every query it belongs to; queries without an answer do not count."""
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


# Two that both find something for fewer queries than this, and whose lists together recall so much more than the better
# one alone, are worth fusing.
BOTH_BELOW = 0.60
GAIN_FROM = 0.15
# Two that both find something for more queries than this bring a marginal lift, which is not worth the time.
BOTH_ABOVE = 0.70


class Share(msgspec.Struct, frozen=True):
    """A mean over queries with its interval."""

    mean: float
    low: float
    high: float


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the queries for which Trivet, the member, both or neither have something relevant among the first k.

    `recall_union` is the most that a fusion of the two could reach, `gain` how far that is above the better one. Of a
    leg of Trivet's own, the member is the leg and `trivet` the recipe without it.
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
    """What the rules say, and the figures it rests on. `sure` if the intervals lie on the same side of the bounds."""

    verdict: Literal["worth a trial", "not worth its time", "not settled"]
    because: str
    sure: bool

    @property
    def sentence(self) -> str:
        doubt = "" if self.sure else " So few queries leave it open."
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
        because = f"{shared}, and above {BOTH_ABOVE:.0%} a fusion hardly lifts anything"
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
