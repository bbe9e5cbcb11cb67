"""Indexes the tree of a set and asks every question about it, with the time that each takes.

semble beside us: a process of its own Python, which is asked the same questions about the same trees.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar

import msgspec

from trivet.code.code_index import MAX_HITS, CodeIndex
from trivet.code.encoder import FOLDER, bundled
from trivet.code.index.database import IndexFile
from trivet.code.tree import Root
from trivet.code.types import DEFAULT_LIMIT
from trivet.errors import InvalidInput, TrivetError
from trivet.lab.code.sets import CodeSet, Scope

# A run has so many files of each query where there are so many; nDCG@10 looks no deeper.
FILES = 10
# Chunks that are asked for until there are as many files. The order does not depend on it.
CHUNKS = (100, MAX_HITS)

Ranked = list[tuple[str, float]]


class IndexCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one tree cost to index, from nothing."""

    files: int
    megabytes: float
    chunks: int
    processor_s: float
    wall_s: float


class SearchRun(msgspec.Struct, frozen=True, kw_only=True):
    """The files that each query of a set found, best first, and how long each took, by the clock and the processor.

    Of several recipes the first alone is timed.
    """

    run: Mapping[str, Ranked]
    wall_ms: Sequence[float]
    processor_ms: Sequence[float]


class SetAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """One set, asked in one or several ways over the same index."""

    indexed: IndexCost
    asked: tuple[SearchRun, ...]


def ask_trivet(one: CodeSet, scope: Scope, recipes: Sequence[str]) -> SetAnswers:
    """In an index of its own, which is gone afterwards: the user's are not touched, and none is found ready."""
    folder = Path(os.path.realpath(one.folder(scope)))
    # Not `CodeIndex.open`, which would take a repository that the tree happens to lie in.
    root = Root(folder=folder, prefix="", identity=str(folder), git=False)
    encoder = bundled() if FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="trivet-lab-code-") as place:
        wall, processor = time.perf_counter(), _processor()
        with CodeIndex(root, IndexFile(Path(place) / "index.db"), encoder) as index:
            status = index.refresh()
            indexed = IndexCost(
                files=status.files,
                megabytes=round(sum((folder / path).stat().st_size for path in index.paths()) / 1e6, 3),
                chunks=status.chunks,
                processor_s=round(_processor() - processor, 3),
                wall_s=round(time.perf_counter() - wall, 3),
            )
            index.search("what is kept from the first query on")
            prefix = one.prefix(scope)
            first, *others = recipes
            asked = [_asked(index, one, prefix, first, timed=True)]
            asked += [_asked(index, one, prefix, recipe, timed=False) for recipe in others]
            return SetAnswers(indexed=indexed, asked=tuple(asked))


def _asked(index: CodeIndex, one: CodeSet, prefix: str, recipe: str, timed: bool) -> SearchRun:
    """`timed` asks each query once more, for as many chunks as a user gets."""
    run: dict[str, Ranked] = {}
    walls, processors = [], []
    for query in one.queries:
        if timed:
            wall, processor = time.perf_counter(), time.process_time()
            index.search(query.text, limit=DEFAULT_LIMIT, recipe=recipe)
            processors.append((time.process_time() - processor) * 1000)
            walls.append((time.perf_counter() - wall) * 1000)
        run[query.id] = _files(index, query.text, prefix, recipe)
    return SearchRun(run=run, wall_ms=walls, processor_ms=processors)


def _files(index: CodeIndex, text: str, prefix: str, recipe: str) -> Ranked:
    for limit in CHUNKS:
        hits = index.search(text, limit=limit, recipe=recipe).hits
        ranked = strictly_decreasing((prefix + hit.path, hit.score) for hit in hits)
        if len(ranked) >= FILES or len(hits) < limit:
            break
    return ranked


def strictly_decreasing(hits: Iterable[tuple[str, float]]) -> Ranked:
    """Each file once, at its best chunk, with scores that strictly fall, so that no tool can order ties differently."""
    ranked: dict[str, float] = {}
    last = float("inf")
    for path, score in hits:
        if path not in ranked:
            ranked[path] = last = min(score, last - 1e-6)
    return list(ranked.items())


def _processor() -> float:
    """Of this process, its threads and the processes that it waited for."""
    waited_for = os.times()
    return time.process_time() + waited_for.children_user + waited_for.children_system


DRIVER = Path(__file__).with_name("semble_driver.py")
INSTALL = "python -m venv semble-venv && semble-venv/bin/pip install semble==0.7.0"
ERROR_TAIL_CHARACTERS = 600

T = TypeVar("T", bound=msgspec.Struct)


class Version(msgspec.Struct, frozen=True):
    """Which semble it is, and whether it has its model, without which words alone decide."""

    version: str
    model: bool

    @property
    def name(self) -> str:
        return f"semble {self.version}" + ("" if self.model else " without its model")


class _Answer(msgspec.Struct, frozen=True):
    files: int
    megabytes: float
    chunks: int
    processor_s: float
    wall_s: float
    ranked: Sequence[Sequence[str]]
    wall_ms: Sequence[float]
    processor_ms: Sequence[float]


class Semble:
    """Asked set by set, in turn with us, so that a busy machine is busy for both. What fails ends the run."""

    def __init__(self, python: Path) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by __exit__
        try:
            self._process = subprocess.Popen(
                [str(python), str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said
            )
        except OSError as error:
            self._said.close()
            raise InvalidInput(
                f"{python} cannot be started ({error.strerror}). Give the Python of an environment with semble, which "
                f"you make with: {INSTALL}"
            ) from None
        try:
            self.version = self._read(Version)
        except TrivetError as error:
            self._end()
            raise InvalidInput(f"{error} If semble is not installed there: {INSTALL}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def ask(self, one: CodeSet, scope: Scope) -> SetAnswers:
        job = {"folder": str(one.folder(scope)), "texts": [query.text for query in one.queries]}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and reading its answer tells why
        return _answers(one, scope, self._read(_Answer))

    def _read(self, kind: type[T]) -> T:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, msgspec.ValidationError):
            self._said.seek(0)
            words = self._said.read().decode(errors="replace").strip()[-ERROR_TAIL_CHARACTERS:]
            raise TrivetError(f"semble gave no answer. The last it said: {words or 'nothing'}.") from None

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._said.close()


def _answers(one: CodeSet, scope: Scope, answer: _Answer) -> SetAnswers:
    prefix = one.prefix(scope)
    run = {
        query.id: strictly_decreasing((prefix + path, 1 / rank) for rank, path in enumerate(files, 1))
        for query, files in zip(one.queries, answer.ranked, strict=True)
    }
    asked = SearchRun(run=run, wall_ms=answer.wall_ms, processor_ms=answer.processor_ms)
    return SetAnswers(indexed=msgspec.convert(answer, IndexCost, from_attributes=True), asked=(asked,))
