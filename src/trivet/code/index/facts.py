"""What the index stores of one file: definitions, chunk lines, and postings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.code.encoder import CONTAINER, DOC, NAME, Encoder, hashes_of, words_of
from trivet.code.types import Chunk, Definition, Kind, ParsedFile

# Increase when chunks, definitions or terms change, so that all files are parsed again.
ANALYSER_VERSION = 2
MAX_COUNTED_WORDS = 255
KINDS: tuple[Kind, ...] = get_args(Kind)

Numbers = NDArray[np.integer[Any]]


class FileFacts(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A file's facts as bytes; `posting_*` are parallel, chunk after chunk."""

    language: str
    definitions: tuple[Definition, ...]
    symbols: tuple[str, ...]
    starts: bytes
    ends: bytes
    kinds: bytes
    lengths: bytes
    defining: bytes  # the chunk that each definition begins in
    terms: bytes
    held: bytes  # number of postings per chunk
    posting_term: bytes  # positions in `terms`
    posting_count: bytes
    posting_fields: bytes
    vectors: bytes  # one int8 row per chunk, or empty without an encoder


class _FileWords(dict[str, int]):
    """Numbered words of a file; each distinct word is split into terms once."""

    def __init__(self) -> None:
        self.terms: dict[int, int] = {}
        self.of: list[list[int]] = []  # the terms of each word by its number

    def __missing__(self, word: str) -> int:
        terms = self.terms
        self[word] = number = len(self.of)
        self.of.append([terms.setdefault(term, len(terms)) for term in hashes_of(word)])
        return number


class _Postings(NamedTuple):
    held: Numbers
    lengths: Numbers
    term: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    fields: Numbers


def facts_of(path: str, parsed: ParsedFile, encoder: Encoder | None) -> FileFacts:
    words = _FileWords()
    found = _postings(parsed, words)
    terms = np.array(list(words.terms), dtype=np.uint64)
    held = found.held.tolist()
    return FileFacts(
        language=parsed.language,
        definitions=parsed.definitions,
        symbols=tuple(chunk.symbol for chunk in parsed.chunks),
        starts=_packed([chunk.start for chunk in parsed.chunks]),
        ends=_packed([chunk.end for chunk in parsed.chunks]),
        kinds=bytes(KINDS.index(chunk.kind) for chunk in parsed.chunks),
        lengths=_packed(found.lengths),
        defining=_packed(_defining(parsed)),
        terms=terms.tobytes(),
        held=_packed(held),
        posting_term=_packed(found.term),
        posting_count=np.minimum(found.counts, MAX_COUNTED_WORDS).astype(np.uint8).tobytes(),
        posting_fields=found.fields.astype(np.uint8).tobytes(),
        vectors=encoder.vectors(path, terms, held, found.term, found.counts).tobytes()
        if encoder
        else b"",
    )


def _postings(parsed: ParsedFile, words: _FileWords) -> _Postings:
    spoken = [list(map(words.__getitem__, words_of(chunk.text))) for chunk in parsed.chunks]
    fields = [_fields(chunk, parsed.definitions, words) for chunk in parsed.chunks]
    held = [list(one) for one in fields]
    size = np.array([len(one) for one in words.of], dtype=np.int64)
    flat = np.fromiter(chain.from_iterable(words.of), dtype=np.int64, count=int(size.sum()))
    in_text, in_fields = (
        _expanded(parts, size, flat, len(words.terms)) for parts in (spoken, held)
    )
    bits = np.repeat(_joined(one.values() for one in fields), size[_joined(held)])
    places = np.concatenate([in_text, in_fields])
    keys, place = np.unique(places, return_inverse=True)
    count = np.bincount(place[: len(in_text)], minlength=len(keys))
    marked = np.zeros(len(keys), dtype=np.int64)
    np.bitwise_or.at(marked, place[len(in_text) :], bits)
    chunk, term = np.divmod(keys, max(len(words.terms), 1))
    return _Postings(
        held=np.bincount(chunk, minlength=len(spoken)),
        lengths=np.bincount(in_text // max(len(words.terms), 1), minlength=len(spoken)),
        term=term.astype(np.uint32),
        counts=count.astype(np.uint32),
        fields=marked,
    )


def _expanded(parts: Sequence[Sequence[int]], size: Numbers, flat: Numbers, terms: int) -> Numbers:
    """Return each chunk's terms as chunk number times `terms` plus term number."""
    words = _joined(parts)
    chunks = np.repeat(np.arange(len(parts)), [len(one) for one in parts])
    sizes = size[words]
    first = np.cumsum(size) - size
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found: Numbers = (
        np.repeat(chunks, sizes) * terms + flat[np.repeat(first[words], sizes) + within]
    )
    return found


def _joined(parts: Iterable[Iterable[int]]) -> Numbers:
    return np.fromiter(chain.from_iterable(parts), dtype=np.int64)


def _fields(chunk: Chunk, definitions: Sequence[Definition], words: _FileWords) -> dict[int, int]:
    fields: dict[int, int] = {}
    defined = [definitions[at] for at in chunk.defines]
    texts = (
        (NAME, [one.name for one in defined] or [chunk.symbol.rpartition(".")[2]]),
        (CONTAINER, [chunk.heading, *{one.container for one in defined}]),
        (DOC, [one.doc for one in defined]),
    )
    for bit, parts in texts:
        for word in words_of("\n".join(parts)):
            number = words[word]
            fields[number] = fields.get(number, 0) | bit
    return fields


def _defining(parsed: ParsedFile) -> list[int]:
    chunk_of = {at: number for number, chunk in enumerate(parsed.chunks) for at in chunk.defines}
    return [chunk_of.get(at, 0) for at in range(len(parsed.definitions))]


def _packed(numbers: Sequence[int] | Numbers) -> bytes:
    return np.asarray(numbers, dtype=np.uint32).tobytes()
