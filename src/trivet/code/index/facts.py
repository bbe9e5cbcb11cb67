"""What the index keeps of one file: its definitions, the lines of its chunks, and which words stand where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

import msgspec
import numpy as np

from trivet.code.encoder import CONTAINER, DOC, NAME, Encoder
from trivet.code.index.terms import hashes_of, words_of
from trivet.code.types import Chunk, Definition, Kind, ParsedFile

# Goes up when chunks, definitions or terms come out differently: files are then read anew.
ANALYSER_VERSION = 2
MOST_COUNTED = 255
KINDS: tuple[Kind, ...] = get_args(Kind)


class FileFacts(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One file. Arrays are kept as bytes; `posting_*` are parallel, chunk after chunk."""

    language: str
    definitions: tuple[Definition, ...]
    symbols: tuple[str, ...]
    starts: bytes
    ends: bytes
    kinds: bytes
    lengths: bytes
    defining: bytes  # the chunk in which each definition begins
    terms: bytes
    held: bytes  # how many postings each chunk has
    posting_term: bytes  # a place in `terms`
    posting_count: bytes
    posting_fields: bytes
    vectors: bytes  # one row of whole numbers a chunk, or nothing where there is no encoder


class _FileTerms:
    """The terms of one file, numbered as they come. A word that stands in many chunks is cut up once."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self._of_word: dict[str, tuple[int, ...]] = {}

    def of(self, word: str) -> tuple[int, ...]:
        found = self._of_word.get(word)
        if found is None:
            numbers = self.numbers
            found = tuple([numbers.setdefault(term, len(numbers)) for term in hashes_of(word)])
            self._of_word[word] = found
        return found

    def counts(self, text: str) -> dict[int, int]:
        counts: dict[int, int] = {}
        for word, times in Counter(words_of(text)).items():
            for term in self.of(word):
                counts[term] = counts.get(term, 0) + times
        return counts


def facts_of(path: str, parsed: ParsedFile, encoder: Encoder | None) -> FileFacts:
    known = _FileTerms()
    postings: tuple[list[int], list[int], list[int]] = ([], [], [])
    lengths: list[int] = []
    held: list[int] = []
    for chunk in parsed.chunks:
        counts = known.counts(chunk.text)
        lengths.append(sum(counts.values()))
        fields = _fields(chunk, parsed.definitions, known)
        counts |= {term: 0 for term in fields if term not in counts}
        held.append(len(counts))
        postings[0].extend(counts)
        postings[1].extend(counts.values())
        postings[2].extend([fields.get(term, 0) for term in counts])
    term, count, field = (np.array(column, dtype=np.uint32) for column in postings)
    terms = np.array(list(known.numbers), dtype=np.uint64)
    return FileFacts(
        language=parsed.language,
        definitions=parsed.definitions,
        symbols=tuple(chunk.symbol for chunk in parsed.chunks),
        starts=_packed([chunk.start for chunk in parsed.chunks]),
        ends=_packed([chunk.end for chunk in parsed.chunks]),
        kinds=bytes(KINDS.index(chunk.kind) for chunk in parsed.chunks),
        lengths=_packed(lengths),
        defining=_packed(_defining(parsed)),
        terms=terms.tobytes(),
        held=_packed(held),
        posting_term=term.tobytes(),
        posting_count=np.minimum(count, MOST_COUNTED).astype(np.uint8).tobytes(),
        posting_fields=field.astype(np.uint8).tobytes(),
        vectors=encoder.vectors(path, terms, held, term, count).tobytes() if encoder else b"",
    )


def _fields(chunk: Chunk, definitions: Sequence[Definition], known: _FileTerms) -> dict[int, int]:
    fields: dict[int, int] = {}
    defined = [definitions[at] for at in chunk.defines]
    texts = (
        (NAME, [one.name for one in defined] or [chunk.symbol.rpartition(".")[2]]),
        (CONTAINER, [chunk.heading, *{one.container for one in defined}]),
        (DOC, [one.doc for one in defined]),
    )
    for bit, parts in texts:
        for word in words_of("\n".join(parts)):
            for term in known.of(word):
                fields[term] = fields.get(term, 0) | bit
    return fields


def _defining(parsed: ParsedFile) -> list[int]:
    chunk_of = {at: number for number, chunk in enumerate(parsed.chunks) for at in chunk.defines}
    return [chunk_of.get(at, 0) for at in range(len(parsed.definitions))]


def _packed(numbers: Sequence[int]) -> bytes:
    return np.array(numbers, dtype=np.uint32).tobytes()
