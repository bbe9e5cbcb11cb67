"""Runs the queries of code-search sets against Trivet and semble, and times them.

A set has a tree, queries about it, and the files that answer them.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Literal, Self, TypeVar

import msgspec

from trivet.code.code_index import MAX_HITS, CodeIndex
from trivet.code.encoder import FOLDER, bundled
from trivet.code.index.database import IndexFile
from trivet.code.tree import Root
from trivet.code.types import DEFAULT_LIMIT
from trivet.errors import InvalidInput, TrivetError
from trivet.lab.datasets.dataset import NO_STRATUM, RELEVANT, Identifier, Written
from trivet.lab.datasets.read_files import (
    content,
    find_file,
    json_lines,
    raise_line_error,
    text_lines,
)

Scope = Literal["root", "whole"]
QUERIES, GRADES, META, TREE = "queries.jsonl", "qrels.tsv", "meta.json", "tree"
LAYOUT = f"A set is a folder with {TREE}/, {QUERIES}, {GRADES} and {META}"
_whole_number = re.compile(r"[+-]?[0-9]{1,9}")


class CodeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query about a tree. Other fields are ignored."""

    id: Identifier
    text: Written
    stratum: Written = NO_STRATUM


class _Meta(msgspec.Struct, frozen=True):
    root: str = ""


@dataclass(frozen=True, kw_only=True)
class CodeSet:
    """A tree with queries, and grades by query and path (from `tree`).

    A file of grade 0 or less is forbidden: it must not be found.
    """

    name: str
    tree: Path
    root: str
    queries: tuple[CodeQuery, ...]
    grades: Mapping[str, Mapping[str, int]]

    def folder(self, scope: Scope) -> Path:
        return self.tree / self.prefix(scope)

    def prefix(self, scope: Scope) -> str:
        """Return what turns a path in that folder into its path in the tree."""
        return f"{self.root}/" if scope == "root" and self.root else ""


def read_sets(folder: Path, only: Collection[str] = ()) -> tuple[CodeSet, ...]:
    """Read a set, or the sets below a folder. Query ids are made unique."""
    if not folder.is_dir():
        raise InvalidInput(
            f"{folder}: there is no such folder. {LAYOUT}; give one, or a folder of them."
        )
    found = (
        [folder] if _is_set(folder) else sorted(path for path in folder.iterdir() if _is_set(path))
    )
    if not found:
        raise InvalidInput(
            f"{folder}: there is no set in it. {LAYOUT}; give one, or a folder of them."
        )
    names = [path.resolve().name for path in found]
    if unknown := sorted(set(only) - set(names)):
        raise InvalidInput(
            f"{folder}: there is no set {unknown[0]!r}. There are: {', '.join(names)}."
        )
    sets = _unique(
        [
            read_set(path)
            for path, name in zip(found, names, strict=True)
            if not only or name in only
        ]
    )
    if not any(
        grade >= RELEVANT
        for one in sets
        for grades in one.grades.values()
        for grade in grades.values()
    ):
        raise InvalidInput(
            f"{folder}: no query has a file of grade 1 or more in {GRADES}, "
            "so nothing can be measured."
        )
    return sets


def read_set(folder: Path) -> CodeSet:
    tree = folder / TREE
    if not tree.is_dir():
        raise InvalidInput(f"{tree}: there is no such folder. {LAYOUT}.")
    queries = _queries(find_file(folder, QUERIES))
    grades = _grades(find_file(folder, GRADES), {query.id for query in queries})
    return CodeSet(
        name=folder.resolve().name,
        tree=tree,
        root=_root(folder / META, tree),
        queries=queries,
        grades=grades,
    )


def fingerprint(sets: Sequence[CodeSet], scope: Scope) -> str:
    """Hash queries and grades; runs with the same hash are comparable."""
    asked = [(one.name, one.prefix(scope), one.queries, sorted(one.grades.items())) for one in sets]
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()


def _is_set(folder: Path) -> bool:
    """Accept any of the parts, so that an incomplete set is refused, not skipped."""
    return any((folder / name).exists() for name in (TREE, QUERIES, f"{QUERIES}.gz", GRADES))


def _queries(path: Path) -> tuple[CodeQuery, ...]:
    first_line: dict[str, int] = {}
    queries = []
    for number, query in json_lines(path, CodeQuery):
        if query.id in first_line:
            raise_line_error(
                path,
                number,
                f"id {query.id!r} is taken by line {first_line[query.id]}. Ids must be unique.",
            )
        first_line[query.id] = number
        queries.append(query)
    if not queries:
        raise InvalidInput(f"{path}: there is no query in it.")
    return tuple(queries)


def _grades(path: Path, queries: Collection[str]) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {query: {} for query in queries}
    for number, line in text_lines(path):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 3:
            raise_line_error(
                path,
                number,
                f"{len(fields)} columns, not 3: query, path and grade, separated by tabs.",
            )
        query, file, grade = fields
        if number == 1 and query not in queries and not _whole_number.fullmatch(grade):
            continue  # a header line
        if query not in queries:
            raise_line_error(path, number, f"there is no query {query!r} in {QUERIES}.")
        if not _whole_number.fullmatch(grade):
            raise_line_error(
                path,
                number,
                f"grade {grade!r} is not a whole number. Higher is better; 0 is forbidden.",
            )
        if file in grades[query]:
            raise_line_error(
                path, number, f"query {query!r} and file {file!r} were judged on an earlier line."
            )
        grades[query][file] = int(grade)
    return grades


def _root(path: Path, tree: Path) -> str:
    try:
        root = msgspec.json.decode(content(path), type=_Meta).root
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f'{path}: {error}. It is a JSON object such as {{"root": "src"}}.'
        ) from None
    parts = PurePosixPath(root).parts
    if root.startswith("/") or ".." in parts or not (tree / root).is_dir():
        raise InvalidInput(
            f"{path}: root {root!r} is no folder in {tree}. Name a sub-folder, or leave it empty."
        )
    return "/".join(parts)


def _unique(sets: Sequence[CodeSet]) -> tuple[CodeSet, ...]:
    seen = Counter(query.id for one in sets for query in one.queries)
    return tuple(_renamed(one, {id for id, times in seen.items() if times > 1}) for one in sets)


def _renamed(one: CodeSet, repeated: Collection[str]) -> CodeSet:
    names = {
        query.id: f"{one.name}/{query.id}" if query.id in repeated else query.id
        for query in one.queries
    }
    queries = tuple(msgspec.structs.replace(query, id=names[query.id]) for query in one.queries)
    return replace(
        one, queries=queries, grades={names[query]: grades for query, grades in one.grades.items()}
    )


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
            pass  # it has ended; reading its answer reports why
        return _answers(one, scope, self._read(_Answer))

    def _read(self, kind: type[T]) -> T:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, msgspec.ValidationError):
            self._stderr.seek(0)
            words = self._stderr.read().decode(errors="replace").strip()[-ERROR_TAIL_CHARACTERS:]
            raise TrivetError(
                f"semble gave no answer. Its last output: {words or 'nothing'}."
            ) from None

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
