"""Segments as one view, without chunks of changed files; and search filters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trivet.code.file_kind import TEXT, Role, language_of
from trivet.code.index.facts import KINDS
from trivet.code.index.segment import Segment
from trivet.code.tree import Root
from trivet.code.types import CodeFilters
from trivet.errors import InvalidInput

Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]

# Up to this many vectors stay as floats, 1 kB each; beyond, blocks are converted in turn.
MAX_DENSE_CHUNKS = 32_768
# Vectors converted to floats at a time, to bound working memory.
BLOCK = 8_192
# Files that stand for their folder.
STAND_FOR_FOLDERS = ("/__init__", "/index", "/mod")


def lengths_of(vectors: NDArray[np.int8]) -> Scores:
    """Return lengths, never 0, so that callers can divide by them."""
    squares = np.zeros(len(vectors), np.float32)
    for start, block in zip(range(0, len(vectors), BLOCK), blocks(vectors), strict=True):
        floats = block.astype(np.float32)
        squares[start : start + BLOCK] = np.einsum("ij,ij->i", floats, floats)
    lengths: Scores = np.maximum(np.sqrt(squares), 1e-9)
    return lengths


def blocks(vectors: NDArray[np.int8]) -> Iterator[NDArray[np.int8]]:
    for start in range(0, len(vectors), BLOCK):
        yield vectors[start : start + BLOCK]


def last_part(path: str) -> str:
    return path.rpartition("/")[2]


def module_of(path: str) -> str:
    """Return a path without extension, or its folder if the file stands for it."""
    folder, slash, name = path.rpartition("/")
    module = folder + slash + name.partition(".")[0]
    for whole in STAND_FOR_FOLDERS:
        module = module.removesuffix(whole)
    return module


@dataclass(frozen=True)
class View:
    """Segments with chunks numbered through all; `alive` marks the searchable ones."""

    segments: tuple[Segment, ...]
    alive: Mask

    @property
    def chunks(self) -> int:
        return len(self.alive)

    @cached_property
    def count(self) -> int:
        return int(self.alive.sum())

    @cached_property
    def relative_length(self) -> Scores:
        lengths = np.concatenate([segment.length for segment in self.segments]).astype(np.float32)
        mean = float(lengths[self.alive].mean()) if self.count else 1.0
        relative: Scores = lengths / max(mean, 1.0)
        return relative

    @cached_property
    def roles(self) -> NDArray[np.uint8]:
        return np.concatenate([segment.role[segment.file] for segment in self.segments])

    @cached_property
    def files(self) -> NDArray[np.int32]:
        """The file of each chunk."""
        bases = np.cumsum([0, *[len(segment.path) for segment in self.segments]])
        return np.concatenate(
            [
                segment.file + np.int32(base)
                for segment, base in zip(self.segments, bases, strict=False)
            ]
        )

    @cached_property
    def unit_vectors(self) -> Scores | None:
        """Vectors at unit length; None if they are too many or incomplete."""
        if self.chunks > MAX_DENSE_CHUNKS or any(
            len(one.vectors) != one.chunks for one in self.segments
        ):
            return None
        return np.concatenate(
            [
                segment.vectors.astype(np.float32) / lengths[:, np.newaxis]
                for segment, lengths in zip(self.segments, self.lengths, strict=True)
            ]
        )

    @cached_property
    def lengths(self) -> tuple[Scores, ...]:
        return tuple(lengths_of(segment.vectors) for segment in self.segments)

    @cached_property
    def file_names(self) -> dict[str, list[int]]:
        """File numbers by file name and module name."""
        names: dict[str, list[int]] = {}
        paths = [
            segment.path.at(number)
            for segment in self.segments
            for number in range(len(segment.path))
        ]
        for number, path in enumerate(paths):
            for name in {last_part(path.lower()), last_part(module_of(path.lower()))}:
                names.setdefault(name, []).append(number)
        return names

    def path_of_file(self, number: int) -> str:
        for segment in self.segments:
            if number < len(segment.path):
                return segment.path.at(number)
            number -= len(segment.path)
        raise IndexError(number)

    def placed(self) -> Iterator[tuple[Segment, int]]:
        """Yield each segment with its first chunk's number."""
        first = 0
        for segment in self.segments:
            yield segment, first
            first += segment.chunks

    @cached_property
    def file_count(self) -> int:
        return sum(1 for _ in self.files_alive())

    def files_alive(self) -> Iterator[tuple[Segment, int]]:
        for segment, first in self.placed():
            for number in range(len(segment.path)):
                chunks = self.alive[
                    first + segment.first_chunk[number] : first + segment.first_chunk[number + 1]
                ]
                if not len(chunks) or chunks[0]:
                    yield segment, number

    def segment_of(self, chunk: int) -> tuple[Segment, int]:
        for segment, first in self.placed():
            if chunk < first + segment.chunks:
                return segment, chunk - first
        raise IndexError(chunk)


def view_of(*segments: Segment) -> View:
    return View(segments, np.ones(sum(segment.chunks for segment in segments), bool))


def allowed_chunks(view: View, root: Root, filters: CodeFilters) -> Mask | None:
    """Return a mask, or None if all chunks pass."""
    if filters.kind and filters.kind not in KINDS:
        raise InvalidInput(f"There is no kind {filters.kind!r}; the kinds are {', '.join(KINDS)}.")
    if not root.prefix and filters == CodeFilters():
        return None
    languages = _languages(view, filters.lang) if filters.lang else frozenset()
    masks = []
    for segment in view.segments:
        paths = [segment.path.at(number) for number in range(len(segment.path))]
        files = np.array([_path_fits(path, root.prefix, filters.path) for path in paths], bool)
        if filters.lang:
            files &= np.array(
                [segment.language.at(number) in languages for number in range(len(segment.path))],
                bool,
            )
        if filters.tests is not None:
            files &= (segment.role == Role.TEST) == filters.tests
        chunks = files[segment.file] if len(files) else np.zeros(0, bool)
        if filters.kind:
            chunks &= _of_kind(segment, KINDS.index(filters.kind))
        masks.append(chunks)
    return np.concatenate(masks)


def _languages(view: View, named: str) -> frozenset[str]:
    """Accept a language or an extension: `python` or `py`."""
    lower = named.lower().removeprefix(".")
    there = {
        segment.language.at(number)
        for segment in view.segments
        for number in range(len(segment.path))
    }
    wanted = {lower, language_of(f"a.{lower}", b"")} - {TEXT} | ({lower} & {TEXT})
    if not wanted & there:
        raise InvalidInput(
            f"No file here has the language {named!r}. "
            f"The languages here: {', '.join(sorted(there)) or 'none at all'}."
        )
    return frozenset(wanted)


def _of_kind(segment: Segment, kind: int) -> Mask:
    """Include chunks where one begins: a small class shares a chunk with its methods."""
    found: Mask = segment.kind == kind
    found[segment.symbols.chunk[segment.symbols.kind == kind]] = True
    return found


def _path_fits(path: str, prefix: str, pattern: str) -> bool:
    if not path.startswith(prefix):
        return False
    inner = path[len(prefix) :]
    if not pattern:
        return True
    if any(mark in pattern for mark in "*?["):
        return fnmatch(inner, pattern) or fnmatch(inner, f"*/{pattern}")
    folder = pattern.strip("/").removeprefix("./")
    return inner == folder or inner.startswith(folder + "/") or f"/{folder}/" in f"/{inner}"
