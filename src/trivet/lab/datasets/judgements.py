"""The record of a pool's judgments, the judge's agreement with itself, and the judged dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from trivet.common.clock import now
from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import Dataset, Judgement
from trivet.lab.datasets.plain_layout import save
from trivet.lab.datasets.pools import Pool, fingerprint
from trivet.lab.datasets.read_files import raise_line_error

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
