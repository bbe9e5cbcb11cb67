"""Two written arms side by side: every measure, every stratum, and the queries that moved most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from trivet.errors import InvalidInput
from trivet.lab import MEASURING, need
from trivet.lab.compare import HEADLINE, Comparison, Move, compare
from trivet.lab.lengths import LengthReport
from trivet.lab.measures import Grades
from trivet.lab.saved_runs import HitTrace, WrittenArm, grades_of, read_pair


class GradedHit(msgspec.Struct, frozen=True, kw_only=True):
    """A hit with its trace. `grade` is None if the document was not judged or the judgements are not at hand."""

    hit: HitTrace
    grade: int | None


class MovedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query whose value changed, with the first hits of each arm."""

    query: str
    text: str
    stratum: str | None
    base: float
    candidate: float
    base_top: tuple[GradedHit, ...]
    candidate_top: tuple[GradedHit, ...]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    config: str
    lengths: LengthReport | None = None
    left_out: tuple[str, ...] = ()  # legs that took no part, since there was no embedder


class Versus(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms compared. Strata and moved queries are shown in `measure`."""

    base: Side
    candidate: Side
    dataset: str
    measure: str
    overall: Mapping[str, Comparison]
    by_stratum: Mapping[str, Mapping[str, Comparison]]
    moved: tuple[MovedQuery, ...]


def compare_arms(base: Path, candidate: Path, measure: str = HEADLINE, moved: int = 5) -> Versus:
    need(*MEASURING)
    before, after = read_pair(base, candidate)
    compared = compare(before.measured, after.measured)
    if measure not in compared.overall:
        raise InvalidInput(f"Measure {measure!r} was not taken. There are: {', '.join(compared.overall)}.")
    grades = grades_of(before) or grades_of(after) or {}
    moves = compared.overall[measure].moved[:moved]
    return Versus(
        base=_side(before),
        candidate=_side(after),
        dataset=before.manifest.dataset,
        measure=measure,
        overall=compared.overall,
        by_stratum=compared.by_stratum,
        moved=tuple(_moved(move, before, after, grades) for move in moves),
    )


def _side(arm: WrittenArm) -> Side:
    left_out = tuple(arm.manifest.whole.get("left_out", ()))
    return Side(folder=str(arm.folder), config=arm.config, lengths=arm.lengths, left_out=left_out)


def _moved(move: Move, before: WrittenArm, after: WrittenArm, grades: Grades) -> MovedQuery:
    line = before.queries[move.query]
    return MovedQuery(
        query=move.query,
        text=line.text,
        stratum=line.stratum,
        base=move.base,
        candidate=move.candidate,
        base_top=_graded(before, move.query, grades),
        candidate_top=_graded(after, move.query, grades),
    )


def _graded(arm: WrittenArm, query: str, grades: Grades) -> tuple[GradedHit, ...]:
    judged = grades.get(query, {})
    return tuple(GradedHit(hit=hit, grade=judged.get(hit.document)) for hit in arm.queries[query].top)
