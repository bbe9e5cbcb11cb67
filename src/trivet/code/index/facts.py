"""What the index keeps of one file: its definitions, the lines of its chunks, and which words stand where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec
import numpy as np

from trivet.code.encoder import CONTAINER, DOC, NAME, Encoder
from trivet.code.index.terms import all_hashes, words_of
from trivet.code.types import Chunk, Definition, Kind, ParsedFile

# Goes up when chunks, definitions or terms come out differently: files are then read anew.
ANALYSER_VERSION = 1
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


def facts_of(path: str, parsed: ParsedFile, encoder: Encoder | None) -> FileFacts:
    places: dict[int, int] = {}
    rows: list[tuple[int, int, int]] = []
    lengths: list[int] = []
    held: list[int] = []
    for chunk in parsed.chunks:
        counts = all_hashes(words_of(chunk.text))
        fields = _fields(chunk, parsed.definitions)
        terms_here = counts.keys() | fields.keys()
        lengths.append(sum(counts.values()))
        held.append(len(terms_here))
        rows += [
            (places.setdefault(term, len(places)), min(counts.get(term, 0), MOST_COUNTED), fields.get(term, 0))
            for term in terms_here
        ]
    postings = np.array(rows, dtype=np.uint32).reshape(-1, 3)
    terms = np.array(list(places), dtype=np.uint64)
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
        posting_term=postings[:, 0].tobytes(),
        posting_count=postings[:, 1].astype(np.uint8).tobytes(),
        posting_fields=postings[:, 2].astype(np.uint8).tobytes(),
        vectors=encoder.vectors(path, terms, held, postings).tobytes() if encoder else b"",
    )


def _fields(chunk: Chunk, definitions: Sequence[Definition]) -> dict[int, int]:
    fields: dict[int, int] = {}
    defined = [definitions[at] for at in chunk.defines]
    _mark(fields, NAME, [one.name for one in defined] or [chunk.symbol.rpartition(".")[2]])
    _mark(fields, CONTAINER, [chunk.heading, *{one.container for one in defined}])
    _mark(fields, DOC, [one.doc for one in defined])
    return fields


def _mark(fields: dict[int, int], bit: int, texts: Sequence[str]) -> None:
    for term in all_hashes([word for text in texts for word in words_of(text)]):
        fields[term] = fields.get(term, 0) | bit


def _defining(parsed: ParsedFile) -> list[int]:
    chunk_of = {at: number for number, chunk in enumerate(parsed.chunks) for at in chunk.defines}
    return [chunk_of.get(at, 0) for at in range(len(parsed.definitions))]


def _packed(numbers: Sequence[int]) -> bytes:
    return np.array(numbers, dtype=np.uint32).tobytes()
