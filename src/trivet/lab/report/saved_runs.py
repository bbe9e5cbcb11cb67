"""Arms read back from the folders of `trivet lab run`, and the comparison of two."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.datasets.catalog import find_dataset
from trivet.lab.datasets.dataset import Dataset
from trivet.lab.datasets.plain_layout import read_judgements
from trivet.lab.datasets.read_files import content, json_lines, raise_line_error
from trivet.lab.measure.comparison import HEADLINE, Comparison, Move, compare
from trivet.lab.measure.hit_analysis import LengthReport
from trivet.lab.measure.measures import Grades, Measured, means
from trivet.lab.optional_packages import MEASURING, need

PER_QUERY = "per_query.jsonl"
MANIFEST = "manifest.json"
MEASURES = "measures.json"
# A copy of the judgments, so that a folder of arms explains itself.
QRELS = "qrels.tsv"


class LegTrace(msgspec.Struct, frozen=True):
    """A leg's score for a hit; `rank` is None if the leg did not find it."""

    score: float
    rank: int | None = None


class HitTrace(msgspec.Struct, frozen=True):
    document: str
    score: float
    legs: dict[str, LegTrace]
    exactness: float = 0.0
    prior: float = 1.0


class QueryLine(msgspec.Struct, frozen=True):
    query: str
    text: str
    measures: dict[str, float]
    top: tuple[HitTrace, ...]
    stratum: str | None = None


class Manifest(msgspec.Struct, frozen=True):
    config: str
    recipe: str
    dataset: str
    dataset_sha256: str
    times_ms: dict[str, dict[str, float]] = {}
    whole: dict[str, Any] = {}


class SavedArm(msgspec.Struct, frozen=True, kw_only=True):
    folder: Path
    manifest: Manifest
    queries: Mapping[str, QueryLine]
    measured: Measured
    lengths: LengthReport | None = None  # None if an earlier version wrote the arm.

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def config(self) -> str:
        return self.manifest.config


def read_arm(folder: Path) -> SavedArm:
    if not folder.is_dir():
        raise InvalidInput(
            f"{folder}: there is no such folder. Give one that `trivet lab run` wrote."
        )
    return SavedArm(
        folder=folder,
        manifest=_manifest(folder),
        queries=_queries(folder),
        measured=read_measured(folder),
        lengths=_lengths(folder),
    )


def read_measured(folder: Path) -> Measured:
    values: dict[str, dict[str, float]] = {}
    strata: dict[str, list[str]] = {}
    for line in _lines(folder):
        if not line["measures"]:
            continue
        if line.get("stratum"):
            strata.setdefault(line["stratum"], []).append(line["query"])
        for name, value in line["measures"].items():
            values.setdefault(name, {})[line["query"]] = value
    if not values:
        raise InvalidInput(f"{folder / PER_QUERY}: no query in it has a measure.")
    queries = list(next(iter(values.values())))
    return Measured(
        per_query=values,
        overall=means(values, queries),
        by_stratum={stratum: means(values, ids) for stratum, ids in sorted(strata.items())},
        strata={stratum: tuple(ids) for stratum, ids in sorted(strata.items())},
    )


def _lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / PER_QUERY
    if not path.is_file():
        raise InvalidInput(
            f"{path}: there is no such file. Give a folder that `trivet lab run` wrote."
        )
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not text:
            continue
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{path}:{number}: this is not JSON ({error}).") from None
    return lines


def read_arms(folder: Path) -> list[SavedArm]:
    """Return every arm below the folder by number; all must be of one dataset."""
    found = sorted((path.parent for path in folder.glob(f"*/{PER_QUERY}")), key=_order)
    if not found:
        raise InvalidInput(
            f"{folder}: there is no arm below it. Give the --out folder of `trivet lab run`."
        )
    arms = [read_arm(one) for one in found]
    for other in arms[1:]:
        same_dataset(arms[0], other)
    return arms


def same_dataset(one: SavedArm, other: SavedArm) -> None:
    if one.manifest.dataset_sha256 != other.manifest.dataset_sha256:
        raise InvalidInput(
            f"{one.folder} was measured on {_data(one.manifest)} and {other.folder} on "
            f"{_data(other.manifest)}. Only arms on the same data can be compared: run one again."
        )


def read_pair(base: Path, candidate: Path) -> tuple[SavedArm, SavedArm]:
    arms = read_arm(base), read_arm(candidate)
    same_dataset(*arms)
    return arms


def label(number: int, config: str, longest: int = 36) -> str:
    """Return a short name: number and as much of the recipe as fits."""
    shown = config if len(config) <= longest else f"{config[: longest - 1].rstrip()}…"
    return f"{number}: {shown}"


def labels(arms: Sequence[SavedArm]) -> list[str]:
    return [label(number, arm.config) for number, arm in enumerate(arms, 1)]


def _data(manifest: Manifest) -> str:
    return f"{manifest.dataset} ({manifest.dataset_sha256[:12]})"


def _order(folder: Path) -> tuple[int, str]:
    number = re.match(r"\d+", folder.name)
    return (int(number[0]) if number else 0, folder.name)


def _queries(folder: Path) -> dict[str, QueryLine]:
    path = folder / PER_QUERY
    lines: dict[str, QueryLine] = {}
    for number, line in json_lines(path, QueryLine):
        if line.query in lines:
            raise_line_error(path, number, f"query {line.query!r} is in an earlier line as well.")
        lines[line.query] = line
    return lines


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        whole = msgspec.json.decode(content(path))
        return msgspec.convert({**whole, "whole": whole}, Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, TypeError) as error:
        raise InvalidInput(
            f"{path}: {error}. Give a manifest that `trivet lab run` wrote."
        ) from None


class _Means(msgspec.Struct, frozen=True):
    lengths: LengthReport | None = None


def _lengths(folder: Path) -> LengthReport | None:
    path = folder / MEASURES
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(content(path), type=_Means).lengths
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: {error}. Give a file that `trivet lab run` wrote.") from None


def write_grades(dataset: Dataset, folder: Path) -> None:
    (folder / QRELS).write_bytes(b"".join(dataset.files()[QRELS]))


def grades_of(arm: SavedArm) -> Grades | None:
    """Return the judgments saved with the arm or its dataset, if available."""
    beside = arm.folder / ".." / QRELS
    if beside.is_file():
        return _read(beside)
    try:
        dataset = find_dataset(arm.manifest.dataset)
    except InvalidInput:
        return None  # The dataset was a folder that is gone; callers report missing grades.
    return dataset.grades if dataset.fingerprint == arm.manifest.dataset_sha256 else None


def _read(path: Path) -> Grades:
    grades: dict[str, dict[str, int]] = {}
    for row in read_judgements(path, queries=_AnyId(), documents=_AnyId()):
        grades.setdefault(row.query, {})[row.document] = row.grade
    return grades


class _AnyId:
    """Container of every id: they were checked when the dataset was measured."""

    def __contains__(self, id: object) -> bool:
        return True


class GradedHit(msgspec.Struct, frozen=True, kw_only=True):
    hit: HitTrace
    grade: int | None


class MovedQuery(msgspec.Struct, frozen=True, kw_only=True):
    query: str
    text: str
    stratum: str | None
    base: float
    candidate: float
    base_top: tuple[GradedHit, ...]
    candidate_top: tuple[GradedHit, ...]


class ComparedArm(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    config: str
    lengths: LengthReport | None = None
    left_out: tuple[str, ...] = ()  # Legs that took no part, since there was no embedder.


class ArmComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms compared; strata and moved queries refer to `measure`."""

    base: ComparedArm
    candidate: ComparedArm
    dataset: str
    measure: str
    overall: Mapping[str, Comparison]
    by_stratum: Mapping[str, Mapping[str, Comparison]]
    moved: tuple[MovedQuery, ...]


def compare_arms(
    base: Path, candidate: Path, measure: str = HEADLINE, moved: int = 5
) -> ArmComparison:
    need(*MEASURING)
    before, after = read_pair(base, candidate)
    compared = compare(before.measured, after.measured)
    if measure not in compared.overall:
        raise InvalidInput(
            f"Measure {measure!r} was not taken. Available: {', '.join(compared.overall)}."
        )
    grades = grades_of(before) or grades_of(after) or {}
    moves = compared.overall[measure].moved[:moved]
    return ArmComparison(
        base=_side(before),
        candidate=_side(after),
        dataset=before.manifest.dataset,
        measure=measure,
        overall=compared.overall,
        by_stratum=compared.by_stratum,
        moved=tuple(_moved(move, before, after, grades) for move in moves),
    )


def _side(arm: SavedArm) -> ComparedArm:
    left_out = tuple(arm.manifest.whole.get("left_out", ()))
    return ComparedArm(
        folder=str(arm.folder), config=arm.config, lengths=arm.lengths, left_out=left_out
    )


def _moved(move: Move, before: SavedArm, after: SavedArm, grades: Grades) -> MovedQuery:
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


def _graded(arm: SavedArm, query: str, grades: Grades) -> tuple[GradedHit, ...]:
    judged = grades.get(query, {})
    return tuple(
        GradedHit(hit=hit, grade=judged.get(hit.document)) for hit in arm.queries[query].top
    )
