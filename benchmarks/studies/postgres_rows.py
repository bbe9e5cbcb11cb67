"""Rows for PostgreSQL, packed by numpy for COPY: a million memories in a minute or two.

All texts have one length, so a table's rows are one array. Words are synthetic, unevenly frequent,
and unchanged by our analyzer; vectors are random around a few centers per tenant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from trivet.analyse import analyse

DIMENSION = 384
WORDS_A_MEMORY = 9
VOCABULARY = 20_000
CENTRES = 12
SPREAD = 0.6
NAMES_A_TENANT = 200
MOMENT = "2026-01-01T00:00:00.000000Z"

_HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"

Column = tuple[str, Any]


def vocabulary() -> NDArray[np.bytes_]:
    """Return six-letter words that our analyzer leaves unchanged."""
    generator = np.random.default_rng(11)
    consonants, vowels = list("bdfgklmnprtv"), list("aiou")
    found: dict[str, None] = {}
    while len(found) < VOCABULARY:
        letters = (generator.choice(kind) for kind in (consonants, vowels) * 3)
        word = "".join(letters)
        if tuple(analyse(word)) == (word,):
            found[word] = None
    return np.array(list(found), "S6")


def packed(columns: Sequence[Column], count: int) -> bytes:
    """Pack rows in COPY's binary format.

    A column is a numpy kind with values or one value; None is NULL.
    """
    fields: list[tuple[str, Any]] = [("fields", ">i2")]
    for place, (kind, value) in enumerate(columns):
        fields.append((f"size{place}", ">i4"))
        if value is not None:
            fields.append((f"value{place}", kind))
    rows = np.zeros(count, np.dtype(fields))
    rows["fields"] = len(columns)
    for place, (_, value) in enumerate(columns):
        rows[f"size{place}"] = -1 if value is None else rows.dtype[f"value{place}"].itemsize
        if value is not None:
            rows[f"value{place}"] = value
    return rows.tobytes()


def copy(
    connection: psycopg.Connection[Any], table: str, names: str, portions: Iterator[bytes]
) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({names}) FROM STDIN (FORMAT binary)") as target,
    ):
        target.write(_HEADER)
        for portion in portions:
            target.write(portion)
        target.write(_TRAILER)


class Tenant:
    """A tenant's rows, equal each time they are made."""

    def __init__(
        self, name: str, number: int, size: int, model: int, words: NDArray[np.bytes_]
    ) -> None:
        self._name = text(name)
        self._keys = np.arange(1, size + 1)
        self._size = size
        self._model = model
        self._words = words
        self._generator = np.random.default_rng(number)
        # Frequent words dominate, as in natural language.
        ranks = self._generator.zipf(1.2, size=(size, WORDS_A_MEMORY)) - 1
        self._chosen = np.where(
            ranks < VOCABULARY, ranks, self._generator.integers(VOCABULARY, size=ranks.shape)
        )
        self._ids = np.array(
            [f"{number:08x}-0000-7000-8000-{key:012x}" for key in self._keys], "S36"
        )

    def memories(self) -> bytes:
        empty, moment = text("[]"), text(MOMENT)
        columns: list[Column] = [
            self._name, (">i8", self._keys), ("S36", self._ids), ("S62", self._content()), ("", None), text("facts"),
            empty, (">f8", 0.5), (">f8", 1.0), empty, text("default"), moment, moment, text("active"), ("?", False),
            (">i4", 1), (">i4", WORDS_A_MEMORY), text("local"),
        ]  # fmt: skip
        return packed(columns, self._size)

    def lexical(self) -> bytes:
        nothing = ("S0", b"")
        return packed(
            [
                self._name,
                (">i8", self._keys),
                ("S62", self._content()),
                nothing,
                nothing,
                nothing,
                text("facts"),
            ],
            self._size,
        )

    def postings(self) -> bytes:
        """Return each word of a memory once, with its count."""
        pairs = np.sort(self._chosen, axis=1) + self._keys[:, None] * VOCABULARY
        distinct, counts = np.unique(pairs, return_counts=True)
        zero = (">i4", 0)
        columns: list[Column] = [
            self._name, ("S6", self._words[distinct % VOCABULARY]), (">i8", distinct // VOCABULARY), (">i4", counts),
            zero, zero, zero, zero,
        ]  # fmt: skip
        return packed(columns, len(distinct))

    def passages(self) -> bytes:
        centres = self._generator.normal(size=(CENTRES, DIMENSION)).astype(np.float32)
        vectors = centres[self._generator.integers(CENTRES, size=self._size)]
        vectors = vectors + SPREAD * self._generator.standard_normal(
            (self._size, DIMENSION), np.float32
        )
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        half = np.zeros(
            self._size,
            np.dtype([("dimension", ">i2"), ("unused", ">i2"), ("values", ">f2", DIMENSION)]),
        )
        half["dimension"], half["values"] = DIMENSION, vectors
        columns: list[Column] = [
            self._name, (">i8", self._keys), (">i8", self._model), (">i4", 0), (">i4", 0), (">i4", 62),
            (f"V{half.dtype.itemsize}", half.view(f"V{half.dtype.itemsize}")),
        ]  # fmt: skip
        return packed(columns, self._size)

    def concepts(self) -> bytes:
        keys = np.arange(1, NAMES_A_TENANT + 1)
        return packed(
            [self._name, (">i8", keys), ("S6", self._words[-NAMES_A_TENANT:])], NAMES_A_TENANT
        )

    def mentions(self) -> bytes:
        """Each memory mentions one of its tenant's names."""
        named = self._keys % NAMES_A_TENANT
        label = ("S6", self._words[-NAMES_A_TENANT:][named])
        columns = [
            self._name, (">i8", self._keys), (">i8", named + 1), text("rules"), (">i4", 1), text("name"), label, label
        ]  # fmt: skip
        return packed(columns, self._size)

    def _content(self) -> NDArray[np.bytes_]:
        letters = np.full((self._size, 62), ord(" "), np.uint8)
        for place in range(WORDS_A_MEMORY):
            word = self._words[self._chosen[:, place]]
            letters[:, place * 7 : place * 7 + 6] = word.view(np.uint8).reshape(-1, 6)
        return letters.view("S62").ravel()


def text(value: str) -> Column:
    encoded = value.encode()
    return f"S{len(encoded)}", encoded


# What recalls read; history and fingerprints are left out.
TABLES = {
    "memory": (
        "tenant, key, id, content, title, category, tags, importance, confidence, "
        "expanded_keywords, scope, created_at, updated_at, state, sensitive, revision, length, "
        "owner",
        Tenant.memories,
    ),
    "lexical": ("tenant, memory, content, title, keywords, tags, category", Tenant.lexical),
    "posting": ("tenant, term, memory, content, title, keywords, tags, category", Tenant.postings),
    "passage": ("tenant, memory, model, ordinal, start, stop, vector", Tenant.passages),
    "concept": ("tenant, concept, name", Tenant.concepts),
    "mention": ("tenant, memory, concept, reader, role, kind, label, form", Tenant.mentions),
}
