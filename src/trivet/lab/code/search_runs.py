"""Answers of Trivet and semble to the queries of a code-search set, and what they cost."""

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

# Maximum number of files per query; nDCG@10 looks no deeper.
FILES = 10
# Chunks to request until there are enough files. The order does not depend on it.
CHUNKS = (100, MAX_HITS)

Ranked = list[tuple[str, float]]


class IndexCost(msgspec.Struct, frozen=True, kw_only=True):
    files: int
    megabytes: float
    chunks: int
    processor_s: float
    wall_s: float


class SearchRun(msgspec.Struct, frozen=True, kw_only=True):
    """Each query's files, best first, and times. Of several recipes only the first is timed."""

    run: Mapping[str, Ranked]
    wall_ms: Sequence[float]
    processor_ms: Sequence[float]


class SetAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Answers for one or more recipes over the same index."""

    indexed: IndexCost
    asked: tuple[SearchRun, ...]


def ask_trivet(one: CodeSet, scope: Scope, recipes: Sequence[str]) -> SetAnswers:
    """Search in a temporary index; the user's is not used."""
    folder = Path(os.path.realpath(one.folder(scope)))
    # Not `CodeIndex.open`, which would take a repository that contains the tree.
    root = Root(folder=folder, prefix="", identity=str(folder), git=False)
    encoder = bundled() if FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="trivet-lab-code-") as place:
        wall, processor = time.perf_counter(), _processor()
        with CodeIndex(root, IndexFile(Path(place) / "index.db"), encoder) as index:
            status = index.refresh()
            indexed = IndexCost(
                files=status.files,
                megabytes=round(
                    sum((folder / path).stat().st_size for path in index.paths()) / 1e6, 3
                ),
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
    """Run each query; `timed` first runs it with the users' limit."""
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
    """Return each file once, at its best chunk. Scores strictly fall: no tool can reorder ties."""
    ranked: dict[str, float] = {}
    last = float("inf")
    for path, score in hits:
        if path not in ranked:
            ranked[path] = last = min(score, last - 1e-6)
    return list(ranked.items())


def _processor() -> float:
    """Include threads and the processes waited for."""
    waited_for = os.times()
    return time.process_time() + waited_for.children_user + waited_for.children_system


DRIVER = Path(__file__).with_name("semble_driver.py")
INSTALL = "python -m venv semble-venv && semble-venv/bin/pip install semble==0.7.0"
ERROR_TAIL_CHARACTERS = 600

T = TypeVar("T", bound=msgspec.Struct)


class Version(msgspec.Struct, frozen=True):
    """semble's version, and whether it has its model or words alone."""

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
    """A semble process. It takes turns with Trivet by set, so that load affects both."""

    def __init__(self, python: Path) -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                [str(python), str(DRIVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
            )
        except OSError as error:
            self._stderr.close()
            raise InvalidInput(
                f"Cannot start {python} ({error.strerror}). Give the Python of an environment "
                f"with semble, which you create with: {INSTALL}"
            ) from None
        try:
            self.version = self._read(Version)
        except TrivetError as error:
            self._end()
            raise InvalidInput(f"{error} If semble is not installed there: {INSTALL}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def ask(self, one: CodeSet, scope: Scope) -> SetAnswers:
        job = {"folder": str(one.folder(scope)), "texts": [query.text for query in one.queries]}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None
        return _answers(one, scope, self._read(_Answer))

    def _read(self, kind: type[T]) -> T:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise self._failure() from None

    def _failure(self) -> TrivetError:
        self._stderr.seek(0)
        words = self._stderr.read().decode(errors="replace").strip()[-ERROR_TAIL_CHARACTERS:]
        return TrivetError(f"semble gave no answer. Its last output: {words or 'nothing'}.")

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._stderr.close()


def _answers(one: CodeSet, scope: Scope, answer: _Answer) -> SetAnswers:
    prefix = one.prefix(scope)
    run = {
        query.id: strictly_decreasing(
            (prefix + path, 1 / rank) for rank, path in enumerate(files, 1)
        )
        for query, files in zip(one.queries, answer.ranked, strict=True)
    }
    asked = SearchRun(run=run, wall_ms=answer.wall_ms, processor_ms=answer.processor_ms)
    return SetAnswers(
        indexed=msgspec.convert(answer, IndexCost, from_attributes=True), asked=(asked,)
    )
