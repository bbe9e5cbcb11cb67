"""The judgements on file: one line for each act, written at once, so that work can stop anywhere and go on."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from trivet.clock import now
from trivet.errors import InvalidInput
from trivet.lab.judge.pool import Pool
from trivet.lab.read_files import refuse

SUFFIX = ".judgements.jsonl"
BEST = 3

Grade = Annotated[int, Meta(ge=0, le=BEST)]


class Act(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A grade for one entry of the pool; None for one that was skipped; `undone` takes the last act on it back."""

    entry: Annotated[int, Meta(ge=0)]
    grade: Grade | None = None
    undone: bool = False
    judge: str
    at: str


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    pool_sha256: str


def record_file(pool_file: Path) -> Path:
    return pool_file.with_name(pool_file.name + SUFFIX)


class Record:
    """What has been judged so far. Opening it reads the file; each act is on disk before the next."""

    def __init__(self, path: Path, pool: Pool, judge: str) -> None:
        self.path = path
        self.judge = judge
        self._pool = pool
        self._done: dict[int, int | None] = {}
        self._order: list[int] = []
        for act in _read(path, pool):
            self._take(act)

    @property
    def grades(self) -> dict[int, int]:
        """The grades by place in the pool; what was skipped has none."""
        return {entry: grade for entry, grade in self._done.items() if grade is not None}

    @property
    def skipped(self) -> int:
        return len(self._done) - len(self.grades)

    def next(self) -> int | None:
        """The first place that was not yet graded or skipped, or None at the end."""
        return next((place for place in range(len(self._pool.entries)) if place not in self._done), None)

    def judged(self, entry: int, grade: int | None) -> None:
        self._write(Act(entry=entry, grade=grade, judge=self.judge, at=now()))

    def undo(self) -> int | None:
        """Takes the last act back and says which place is open again; None if there is none."""
        if not self._order:
            return None
        entry = self._order[-1]
        self._write(Act(entry=entry, undone=True, judge=self.judge, at=now()))
        return entry

    def _take(self, act: Act) -> None:
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
                file.write(msgspec.json.encode(_Head(pool_sha256=fingerprint(self._pool))) + b"\n")
            file.write(msgspec.json.encode(act) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(act)


def fingerprint(pool: Pool) -> str:
    return hashlib.sha256(msgspec.json.encode(pool)).hexdigest()


def _read(path: Path, pool: Pool) -> list[Act]:
    if not path.exists():
        return []
    data = path.read_bytes()
    whole, _, torn = data.rpartition(b"\n")
    if torn:  # the machine went down in the middle of a line; what it said is lost, and the line must not stay
        path.write_bytes(data[: len(data) - len(torn)])
    head, *lines = whole.split(b"\n")
    if not whole:
        path.unlink()
        return []
    if not _is_of(head, pool):
        raise InvalidInput(f"{path} holds judgements of another pool. Move it away, or name another file.")
    acts = []
    for number, text in enumerate(lines, 2):
        try:
            act = msgspec.json.decode(text, type=Act)
        except msgspec.DecodeError as error:
            refuse(path, number, f"{error}.")
        if act.entry >= len(pool.entries):
            refuse(path, number, f"there is no entry {act.entry} in the pool.")
        acts.append(act)
    return acts


def _is_of(head: bytes, pool: Pool) -> bool:
    try:
        return msgspec.json.decode(head, type=_Head).pool_sha256 == fingerprint(pool)
    except msgspec.DecodeError:
        return False
