"""One run, counted in the ways memory systems report their figures (docs/results/countings.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import RELEVANT
from trivet.lab.datasets.read_files import raise_line_error, text_lines
from trivet.lab.measure.comparison import bootstrap_means, intervals
from trivet.lab.measure.measures import FORMULAS, Grades, Measure, parse
from trivet.lab.report.saved_runs import SavedArm, grades_of, read_arm

RUN = "run.trec"
DEPTHS = (5, 10)
RESAMPLES = 10_000
CONFIDENCE = 0.95
# Questions without an answer, as LoCoMo and LongMemEval name them. Their evidence misleads.
WITHOUT_ANSWER = frozenset({"adversarial", "abstention"})
EVERY = "all"
ANSWERED = "with an answer"

# What counts as found, as the table names it.
STORED = "the memory"
SESSIONS = "its session, among the first k sessions"
SESSIONS_OF_HITS = "its session, of the first k memories"

Truncate = Callable[[Sequence[str], int], list[str]]


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    found: str
    questions: str
    count: int
    measure: str
    value: float
    low: float
    high: float


class Countings(msgspec.Struct, frozen=True, kw_only=True):
    dataset: str
    config: str
    rows: tuple[Counted, ...]
    manifest: Mapping[str, Any]


def count_arm(folder: Path) -> Countings:
    arm = read_arm(folder)
    grades = grades_of(arm)
    if grades is None:
        raise InvalidInput(
            f"{folder}: it holds no judgments. Repeat `trivet lab run`, which writes them with the "
            "arms."
        )
    answers = _read_answers(folder / RUN)
    groups = _groups(arm)
    rows = [
        row
        for found, judged, cut in _ways(grades)
        for questions, ids in groups.items()
        for row in _counted(
            found,
            questions,
            [id for id in ids if _relevant(judged.get(id, {}))],
            judged,
            answers,
            cut,
        )
    ]
    return Countings(
        dataset=arm.manifest.dataset,
        config=arm.config,
        rows=tuple(rows),
        manifest=arm.manifest.whole,
    )


def session_of(document: str) -> str:
    """Return the session of a turn such as `conv-26/D1:3`."""
    session, colon, _ = document.rpartition(":")
    return session if colon else document


def _ways(grades: Grades) -> list[tuple[str, Grades, Truncate]]:
    """List the ways: what is found, its judgments, and how to cut the first k."""
    stored: tuple[str, Grades, Truncate] = (
        STORED,
        grades,
        lambda answer, depth: list(answer[:depth]),
    )
    if all(session_of(document) == document for judged in grades.values() for document in judged):
        return [stored]
    sessions = {
        query: {
            session_of(document): grade for document, grade in judged.items() if grade >= RELEVANT
        }
        for query, judged in grades.items()
    }
    return [
        stored,
        (SESSIONS, sessions, lambda answer, depth: _sessions(answer)[:depth]),
        (SESSIONS_OF_HITS, sessions, lambda answer, depth: _sessions(answer[:depth])),
    ]


def _sessions(answer: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(map(session_of, answer)))


def _groups(arm: SavedArm) -> dict[str, list[str]]:
    every = list(arm.queries)
    answered = [id for id, line in arm.queries.items() if line.stratum not in WITHOUT_ANSWER]
    return {EVERY: every, **({ANSWERED: answered} if len(answered) < len(every) else {})}


def _relevant(judged: Mapping[str, int]) -> bool:
    return any(grade >= RELEVANT for grade in judged.values())


def _counted(
    found: str,
    questions: str,
    ids: Sequence[str],
    judged: Grades,
    answers: Mapping[str, Sequence[str]],
    cut: Truncate,
) -> list[Counted]:
    if not ids:
        return []
    measures = [parse(f"{kind}@{depth}") for kind in ("any", "recall", "all") for depth in DEPTHS]
    values = np.array(
        [[_value(one, judged[id], answers.get(id, ()), cut) for one in measures] for id in ids]
    )
    bounds = intervals(bootstrap_means(values, RESAMPLES, seed=0), CONFIDENCE)
    return [
        Counted(
            found=found,
            questions=questions,
            count=len(ids),
            measure=str(measure),
            value=round(float(mean), 4),
            low=round(low, 4),
            high=round(high, 4),
        )
        for measure, mean, (low, high) in zip(measures, values.mean(axis=0), bounds, strict=True)
    ]


def _value(
    measure: Measure, judged: Mapping[str, int], answer: Sequence[str], cut: Truncate
) -> float:
    depth = measure.depth or len(answer)
    return FORMULAS[measure.kind](judged, cut(answer, depth), depth)


def _read_answers(path: Path) -> dict[str, list[str]]:
    answers: dict[str, list[str]] = {}
    for number, text in text_lines(path):
        fields = text.split()
        if len(fields) != 6:
            raise_line_error(
                path,
                number,
                f"{len(fields)} columns, not 6. Give a file that `trivet lab run` wrote.",
            )
        answers.setdefault(fields[0], []).append(fields[2])
    return answers
