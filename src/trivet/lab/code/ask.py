"""Indexes the tree of a set and asks every question about it, with the time that each takes."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from trivet.code.code_index import MOST_HITS, CodeIndex
from trivet.code.encoder import FOLDER, bundled
from trivet.code.index.database import IndexFile
from trivet.code.questions import DEFAULT_LIMIT
from trivet.code.tree import Root
from trivet.lab.code.sets import CodeSet, Scope

# A run has so many files of each query where there are so many; nDCG@10 looks no deeper.
FILES = 10
# Chunks that are asked for until there are as many files. The order does not depend on it.
CHUNKS = (100, MOST_HITS)

Ranked = list[tuple[str, float]]


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """What one tree cost to index, from nothing."""

    files: int
    megabytes: float
    chunks: int
    processor_s: float
    wall_s: float


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The files that each query of a set found, best first, and how long each took, by the clock and the processor.

    Of several recipes the first alone is timed.
    """

    run: Mapping[str, Ranked]
    wall_ms: Sequence[float]
    processor_ms: Sequence[float]


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """One set, asked in one or several ways over the same index."""

    indexed: Indexed
    asked: tuple[Asked, ...]


def ask_trivet(one: CodeSet, scope: Scope, recipes: Sequence[str]) -> Answers:
    """In an index of its own, which is gone afterwards: the user's are not touched, and none is found ready."""
    folder = Path(os.path.realpath(one.folder(scope)))
    # Not `CodeIndex.open`, which would take a repository that the tree happens to lie in.
    root = Root(folder=folder, prefix="", identity=str(folder), git=False)
    encoder = bundled() if FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="trivet-lab-code-") as place:
        wall, processor = time.perf_counter(), _processor()
        with CodeIndex(root, IndexFile(Path(place) / "index.db"), encoder) as index:
            status = index.refresh()
            indexed = Indexed(
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
            return Answers(indexed=indexed, asked=tuple(asked))


def _asked(index: CodeIndex, one: CodeSet, prefix: str, recipe: str, timed: bool) -> Asked:
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
    return Asked(run=run, wall_ms=walls, processor_ms=processors)


def _files(index: CodeIndex, text: str, prefix: str, recipe: str) -> Ranked:
    for limit in CHUNKS:
        hits = index.search(text, limit=limit, recipe=recipe).hits
        ranked = falling((prefix + hit.path, hit.score) for hit in hits)
        if len(ranked) >= FILES or len(hits) < limit:
            break
    return ranked


def falling(hits: Iterable[tuple[str, float]]) -> Ranked:
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
