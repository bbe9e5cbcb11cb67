"""Pools of search results to judge, the record of judgments, and its export as a dataset.

A pool's order does not reveal which arm found a document. Some pairs appear twice, to measure how
well the judge agrees with itself.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
from msgspec import Meta

from trivet.common.clock import now
from trivet.errors import InvalidInput
from trivet.lab.datasets.catalog import find_dataset
from trivet.lab.datasets.dataset import Dataset, Judgement
from trivet.lab.datasets.plain_layout import load, save
from trivet.lab.datasets.read_files import raise_line_error, text_lines

DEPTH = 10
# Enough to tell agreement from chance without adding much work.
REPEATED_SHARE = 0.15
# Minimum number of pairs before a repetition, so the judge no longer remembers the first grade.
MIN_REPEAT_DISTANCE = 20


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pair to judge; `again` marks its second appearance."""

    query: str
    document: str
    again: bool = False


class _PoolHeader(msgspec.Struct, frozen=True, kw_only=True):
    pool: Annotated[int, Meta(ge=1, le=1)]
    dataset: str
    dataset_sha256: str
    arms: int
    depth: int
    seed: int


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    dataset: str
    dataset_sha256: str
    arms: int
    depth: int
    seed: int
    entries: tuple[Entry, ...]


def make_pool(
    dataset: Dataset,
    place: str,
    arms: Sequence[Path],
    *,
    depth: int = DEPTH,
    double: float = REPEATED_SHARE,
    seed: int = 0,
    only_unjudged: bool = False,
) -> Pool:
    """Pool the arms' runs.

    `place` is where the judge finds the dataset; `double` the share repeated.
    """
    pairs = {pair for arm in arms for pair in _read_run(arm / "run.trec", dataset, depth)}
    if only_unjudged:
        pairs -= {(row.query, row.document) for row in dataset.judgements}
    if not pairs:
        raise InvalidInput(
            "There is nothing to judge: every document the arms found is already judged."
        )
    return Pool(
        dataset=place,
        dataset_sha256=dataset.fingerprint,
        arms=len(arms),
        depth=depth,
        seed=seed,
        entries=tuple(_sequence(pairs, double, Random(seed))),
    )


def find_arms(folders: Iterable[Path]) -> list[Path]:
    """Return each folder that is an arm, or else the arms below it."""
    arms: list[Path] = []
    for folder in folders:
        found = (
            [folder]
            if (folder / "run.trec").is_file()
            else sorted(run.parent for run in folder.glob("*/run.trec"))
        )
        if not found:
            raise InvalidInput(
                f"{folder}: there is no run.trec in it or below. Give a folder that "
                "`trivet lab run` wrote."
            )
        arms.extend(found)
    return list(dict.fromkeys(arms))


def open_dataset(place: str) -> Dataset:
    """Open a dataset that may have queries without judgments."""
    return load(place, allow_unanswerable=True) if Path(place).is_dir() else find_dataset(place)


def write_pool(pool: Pool, path: Path) -> None:
    head = _PoolHeader(
        pool=1,
        dataset=pool.dataset,
        dataset_sha256=pool.dataset_sha256,
        arms=pool.arms,
        depth=pool.depth,
        seed=pool.seed,
    )
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *pool.entries)))


def read_pool(path: Path) -> Pool:
    (_, first), *rest = list(text_lines(path)) or [(1, "")]
    try:
        head = msgspec.json.decode(first, type=_PoolHeader)
    except msgspec.DecodeError:
        raise_line_error(path, 1, "this is not a pool. Make one with `trivet lab pool`.")
    entries = []
    for number, text in rest:
        try:
            entries.append(msgspec.json.decode(text, type=Entry))
        except msgspec.DecodeError as error:
            raise_line_error(path, number, f"{error}.")
    fields = {
        name: getattr(head, name) for name in ("dataset", "dataset_sha256", "arms", "depth", "seed")
    }
    return Pool(**fields, entries=tuple(entries))


def dataset_of(pool: Pool) -> Dataset:
    """Open the pooled dataset. Raise if it has changed: the judge would grade other texts."""
    dataset = open_dataset(pool.dataset)
    if dataset.fingerprint != pool.dataset_sha256:
        raise InvalidInput(
            f"The dataset {pool.dataset} has changed since it was pooled. Pool its runs again."
        )
    return dataset


def _sequence(pairs: Iterable[tuple[str, str]], double: float, random: Random) -> list[Entry]:
    by_query: dict[str, list[str]] = {}
    for query, document in sorted(pairs):
        by_query.setdefault(query, []).append(document)
    first: list[Entry] = []
    for query in random.sample(list(by_query), len(by_query)):
        documents = random.sample(by_query[query], len(by_query[query]))
        first.extend(Entry(query=query, document=document) for document in documents)
    placed = [(float(place), entry) for place, entry in enumerate(first)]
    for place in random.sample(range(len(first)), math.ceil(len(first) * double)):
        earliest = min(place + MIN_REPEAT_DISTANCE, len(first))
        when = random.uniform(earliest, len(first) + 1)
        placed.append((when, msgspec.structs.replace(first[place], again=True)))
    return [entry for _, entry in sorted(placed, key=lambda pair: pair[0])]


def _read_run(path: Path, dataset: Dataset, depth: int) -> set[tuple[str, str]]:
    known = {document.id for document in dataset.documents}
    found: dict[str, list[tuple[float, str]]] = {}
    for number, line in text_lines(path):
        fields = line.split()
        if len(fields) != 6:
            raise_line_error(
                path,
                number,
                f"{len(fields)} columns, not 6: query, Q0, document, rank, score and name.",
            )
        query, _, document, _, score, _ = fields
        if query not in dataset.grades:
            raise_line_error(
                path,
                number,
                f"there is no query {query!r} in the dataset {dataset.name!r}. "
                "Was the run made on another dataset?",
            )
        if document not in known:
            raise_line_error(
                path, number, f"there is no document {document!r} in the dataset {dataset.name!r}."
            )
        found.setdefault(query, []).append((_score(path, number, score), document))
    tops = {
        query: sorted(rows, key=lambda row: (-row[0], row[1]))[:depth]
        for query, rows in found.items()
    }
    return {(query, document) for query, rows in tops.items() for _, document in rows}


def _score(path: Path, number: int, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise_line_error(path, number, f"score {text!r} is not a number.")
    return score


SUFFIX = ".judgements.jsonl"
MAX_GRADE = 3

Grade = Annotated[int, Meta(ge=0, le=MAX_GRADE)]


class Act(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One step of the judge: a grade, None for a skip, or undoing the last step on the entry."""

    entry: Annotated[int, Meta(ge=0)]
    grade: Grade | None = None
    undone: bool = False
    judge: str
    at: str


class _RecordHeader(msgspec.Struct, frozen=True, kw_only=True):
    pool_sha256: str


def record_file(pool_file: Path) -> Path:
    return pool_file.with_name(pool_file.name + SUFFIX)


class Record:
    """The judgments so far.

    Each act is on disk before the next, so a judge can stop at any time.
    """

    def __init__(self, path: Path, pool: Pool, judge: str) -> None:
        self.path = path
        self.judge = judge
        self._pool = pool
        self._done: dict[int, int | None] = {}
        self._order: list[int] = []
        for act in _read(path, pool):
            self._apply(act)

    @property
    def grades(self) -> dict[int, int]:
        """Grades by position in the pool."""
        return {entry: grade for entry, grade in self._done.items() if grade is not None}

    @property
    def skipped(self) -> int:
        return len(self._done) - len(self.grades)

    def next(self) -> int | None:
        """Return the first open position."""
        return next(
            (place for place in range(len(self._pool.entries)) if place not in self._done), None
        )

    def judged(self, entry: int, grade: int | None) -> None:
        self._write(Act(entry=entry, grade=grade, judge=self.judge, at=now()))

    def undo(self) -> int | None:
        """Take the last act back; return the position that is open again."""
        if not self._order:
            return None
        entry = self._order[-1]
        self._write(Act(entry=entry, undone=True, judge=self.judge, at=now()))
        return entry

    def _apply(self, act: Act) -> None:
        if act.undone:
            self._done.pop(act.entry, None)
            self._order = [entry for entry in self._order if entry != act.entry]
        else:
            self._done[act.entry] = act.grade
            self._order.append(act.entry)

    def _write(self, act: Act) -> None:
        new = not self.path.exists()
        with self.path.open("ab") as file:
            if new:
                file.write(
                    msgspec.json.encode(_RecordHeader(pool_sha256=fingerprint(self._pool))) + b"\n"
                )
            file.write(msgspec.json.encode(act) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._apply(act)


def fingerprint(pool: Pool) -> str:
    return hashlib.sha256(msgspec.json.encode(pool)).hexdigest()


def _read(path: Path, pool: Pool) -> list[Act]:
    if not path.exists():
        return []
    data = path.read_bytes()
    whole, _, torn = data.rpartition(b"\n")
    if torn:  # A crash cut the line short; drop it, so the next one starts on its own line.
        path.write_bytes(data[: len(data) - len(torn)])
    head, *lines = whole.split(b"\n")
    if not whole:
        path.unlink()
        return []
    if not _belongs_to(head, pool):
        raise InvalidInput(
            f"{path} holds judgments of another pool. Move it away, or name another file."
        )
    acts = []
    for number, text in enumerate(lines, 2):
        try:
            act = msgspec.json.decode(text, type=Act)
        except msgspec.DecodeError as error:
            raise_line_error(path, number, f"{error}.")
        if act.entry >= len(pool.entries):
            raise_line_error(path, number, f"there is no entry {act.entry} in the pool.")
        acts.append(act)
    return acts


def _belongs_to(head: bytes, pool: Pool) -> bool:
    try:
        return msgspec.json.decode(head, type=_RecordHeader).pool_sha256 == fingerprint(pool)
    except msgspec.DecodeError:
        return False


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Self-agreement. `kappa` is 0 for chance and None if all grades are equal."""

    pairs: int
    same: int
    kappa: float | None


def agreement(pool: Pool, grades: Mapping[int, int]) -> Agreement:
    first: dict[tuple[str, str], int] = {}
    seen: list[tuple[int, int]] = []
    for place, entry in enumerate(pool.entries):
        if place not in grades:
            continue
        pair = (entry.query, entry.document)
        if not entry.again:
            first[pair] = grades[place]
        elif pair in first:
            seen.append((first[pair], grades[place]))
    return Agreement(
        pairs=len(seen), same=sum(one == other for one, other in seen), kappa=weighted_kappa(seen)
    )


def weighted_kappa(pairs: Sequence[tuple[int, int]], best: int = MAX_GRADE) -> float | None:
    """Return Cohen's kappa, where grades n apart disagree by n squared."""
    if not pairs:
        return None
    observed = sum((one - other) ** 2 for one, other in pairs) / len(pairs)
    firsts, seconds = (
        [sum(pair[side] == grade for pair in pairs) for grade in range(best + 1)] for side in (0, 1)
    )
    expected = (
        sum(
            (one - other) ** 2 * firsts[one] * seconds[other]
            for one in range(best + 1)
            for other in range(best + 1)
        )
        / len(pairs) ** 2
    )
    return 1 - observed / expected if expected else None


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    added: int
    changed: int
    confirmed: int
    kept: int


def final_grades(pool: Pool, grades: Mapping[int, int]) -> dict[tuple[str, str], int]:
    """Return one grade per pair; of two that differ, the lower."""
    final: dict[tuple[str, str], int] = {}
    for place, grade in sorted(grades.items()):
        pair = (pool.entries[place].query, pool.entries[place].document)
        final[pair] = min(grade, final.get(pair, grade))
    return final


def merged(dataset: Dataset, final: Mapping[tuple[str, str], int]) -> tuple[Dataset, Exported]:
    old = {(row.query, row.document): row.grade for row in dataset.judgements}
    both = {**old, **final}
    rows = tuple(
        Judgement(query=query, document=document, grade=grade)
        for (query, document), grade in both.items()
    )
    known = [pair for pair in final if pair in old]
    changed = sum(old[pair] != final[pair] for pair in known)
    counts = Exported(
        added=len(final) - len(known),
        changed=changed,
        confirmed=len(known) - changed,
        kept=len(old) - len(known),
    )
    return replace(dataset, judgements=rows), counts


def export(dataset: Dataset, pool: Pool, grades: Mapping[int, int], folder: Path) -> Exported:
    """Write the merged dataset into a new folder."""
    if not grades:
        raise InvalidInput("Nothing is judged yet, so there is nothing to export.")
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty. Name a new folder; nothing was written.")
    result, counts = merged(dataset, final_grades(pool, grades))
    save(result, folder)
    return counts
