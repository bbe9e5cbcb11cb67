"""Segments: facts of many files as flat arrays, which a search reads and a file can map.

A segment never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from trivet.analyse.terms import hashed
from trivet.code.encoder import all_hashes, hashes_of, normalized_name, terms_of, words_of
from trivet.code.file_kind import role_of
from trivet.code.index.facts import KINDS, FileFacts


class Strings(NamedTuple):
    """Texts as bytes; text n ends at `ends[n]`."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def at(self, number: int) -> str:
        start = int(self.ends[number - 1]) if number else 0
        return self.data[start : int(self.ends[number])].tobytes().decode()

    def __len__(self) -> int:
        return len(self.ends)


def strings(texts: Iterable[str]) -> Strings:
    encoded = [text.encode(errors="replace") for text in texts]
    ends = np.cumsum([len(one) for one in encoded], dtype=np.int64)
    return Strings(np.frombuffer(b"".join(encoded), np.uint8), ends)


# Bits of a path's posting: the term is in the file's own name, or in a folder's.
STEM, FOLDER = 1, 2

Numbers = NDArray[np.int32]
Number = TypeVar("Number", bound=np.integer[Any])


class Postings(NamedTuple):
    """Lists by term. `terms` is sorted; list n spans `offsets[n]` to `offsets[n + 1]`."""

    terms: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    holders: Numbers
    counts: NDArray[np.uint8]
    fields: NDArray[np.uint8]

    def span(self, term: int) -> slice:
        at = int(np.searchsorted(self.terms, np.uint64(term)))
        if at == len(self.terms) or int(self.terms[at]) != term:
            return slice(0, 0)
        return slice(int(self.offsets[at]), int(self.offsets[at + 1]))


class Symbols(NamedTuple):
    """Definitions sorted by the hash of their normalized name."""

    spoken: NDArray[np.uint64]
    term: NDArray[np.uint64]  # the whole name's term among the words of chunks
    chunk: Numbers
    start: Numbers
    end: Numbers
    kind: NDArray[np.uint8]
    name: Strings
    container: Strings
    signature: Strings

    def rows(self, spoken: str) -> range:
        term = np.uint64(hashed(spoken))
        return range(
            int(np.searchsorted(self.spoken, term)),
            int(np.searchsorted(self.spoken, term, "right")),
        )


class Segment(NamedTuple):
    key: Strings
    path: Strings
    language: Strings
    role: NDArray[np.uint8]
    first_chunk: Numbers  # by file, with the total at the end
    file: Numbers
    start: Numbers
    end: Numbers
    kind: NDArray[np.uint8]
    length: Numbers
    symbol: Strings
    words: Postings
    paths: Postings
    path_words: Strings  # the terms of paths as strings, sorted
    symbols: Symbols
    vectors: NDArray[np.int8]  # one row per chunk, or none

    @property
    def chunks(self) -> int:
        return len(self.file)


def segment_of(files: Sequence[tuple[str, str, FileFacts]]) -> Segment:
    facts = [one for _, _, one in files]
    counts = np.array([len(one.kinds) for one in facts], dtype=np.int32)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return Segment(
        key=strings(key for key, _, _ in files),
        path=strings(path for _, path, _ in files),
        language=strings(one.language for one in facts),
        role=np.array([role_of(path) for _, path, _ in files], dtype=np.uint8),
        first_chunk=first,
        file=np.repeat(np.arange(len(files), dtype=np.int32), counts),
        start=_joined([one.starts for one in facts], np.uint32).astype(np.int32),
        end=_joined([one.ends for one in facts], np.uint32).astype(np.int32),
        kind=_joined([one.kinds for one in facts], np.uint8),
        length=_joined([one.lengths for one in facts], np.uint32).astype(np.int32),
        symbol=strings(symbol for one in facts for symbol in one.symbols),
        words=_words(facts),
        paths=_paths([path for _, path, _ in files]),
        path_words=strings(sorted({term for _, path, _ in files for term in terms_of(path)})),
        symbols=_symbols(facts, first),
        vectors=_vectors(facts, int(first[-1])),
    )


def _vectors(facts: Sequence[FileFacts], chunks: int) -> NDArray[np.int8]:
    numbers = _joined([one.vectors for one in facts], np.int8)
    return numbers.reshape(chunks, -1) if chunks and len(numbers) else numbers.reshape(0, 1)


def _joined(parts: Sequence[bytes], kind: type[Number]) -> NDArray[Number]:
    return np.frombuffer(b"".join(parts), dtype=kind)


def _words(facts: Sequence[FileFacts]) -> Postings:
    held = _joined([one.held for one in facts], np.uint32)
    holders = np.repeat(np.arange(len(held), dtype=np.int32), held)
    # A file lists each term once, so sorting these is far less work than sorting all postings.
    vocabulary, numbers = np.unique(
        _joined([one.terms for one in facts], np.uint64), return_inverse=True
    )
    local = _joined([one.posting_term for one in facts], np.uint32).astype(np.int64)
    base = np.cumsum([0, *[len(one.terms) // 8 for one in facts]])[:-1]
    places = local + np.repeat(base, [len(one.posting_count) for one in facts])
    counts = _joined([one.posting_count for one in facts], np.uint8)
    fields = _joined([one.posting_fields for one in facts], np.uint8)
    return _by_term(vocabulary, numbers[places], holders, counts, fields)


def _paths(paths: Sequence[str]) -> Postings:
    rows: list[tuple[int, int, int, int]] = []
    for number, path in enumerate(paths):
        folders, _, name = path.rpartition("/")
        stem = all_hashes(words_of(name.partition(".")[0]))
        folder = all_hashes(words_of(folders))
        rows += [
            (
                term,
                number,
                stem.get(term, 0) + folder.get(term, 0),
                STEM * (term in stem) | FOLDER * (term in folder),
            )
            for term in stem.keys() | folder.keys()
        ]
    terms = np.array([row[0] for row in rows], dtype=np.uint64)
    rest = np.array([row[1:] for row in rows], dtype=np.int32).reshape(-1, 3)
    vocabulary, numbers = np.unique(terms, return_inverse=True)
    return _by_term(
        vocabulary, numbers, rest[:, 0], rest[:, 1].astype(np.uint8), rest[:, 2].astype(np.uint8)
    )


def _by_term(
    vocabulary: NDArray[np.uint64],
    numbers: NDArray[np.int64],
    holders: Numbers,
    counts: NDArray[np.uint8],
    fields: NDArray[np.uint8],
) -> Postings:
    order = np.argsort(numbers.astype(np.int32), kind="stable")
    offsets = np.concatenate(
        [[0], np.cumsum(np.bincount(numbers, minlength=len(vocabulary)))]
    ).astype(np.int64)
    return Postings(vocabulary, offsets, holders[order], counts[order], fields[order])


def _symbols(facts: Sequence[FileFacts], first: Numbers) -> Symbols:
    found = [definition for one in facts for definition in one.definitions]
    chunk = [
        int(first[number]) + int(local)
        for number, one in enumerate(facts)
        for local in np.frombuffer(one.defining, np.uint32)
    ]
    spoken = np.array([hashed(normalized_name(one.name)) for one in found], dtype=np.uint64)
    order = np.argsort(spoken, kind="stable")
    sorted_ = [found[at] for at in order]
    return Symbols(
        spoken=spoken[order],
        term=np.array([next(iter(hashes_of(one.name)), 0) for one in sorted_], dtype=np.uint64),
        chunk=np.array(chunk, dtype=np.int32)[order],
        start=np.array([one.start for one in sorted_], dtype=np.int32),
        end=np.array([one.end for one in sorted_], dtype=np.int32),
        kind=np.array([KINDS.index(one.kind) for one in sorted_], dtype=np.uint8),
        name=strings(one.name for one in sorted_),
        container=strings(one.container for one in sorted_),
        signature=strings(one.signature for one in sorted_),
    )
