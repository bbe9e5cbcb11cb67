"""What is measured on: documents, queries and graded judgements, frozen and compared by content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import msgspec
from msgspec import Meta

from trivet.contract import Importance, Scope
from trivet.types import LinkKind, Value

# A run is written as `run.trec`, whose columns are separated by spaces: an id may hold none.
Identifier = Annotated[str, Meta(min_length=1, pattern=r"^\S+$(?!\n)")]
Written = Annotated[str, Meta(min_length=1, pattern=r"\S")]
Grade = Annotated[int, Meta(ge=0)]

# A document is relevant from this grade on; 0 means it was judged and found wanting.
RELEVANT = 1
# The stratum of a query that names none, where others do.
UNSORTED = "(no stratum)"


class Line(Value, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of what one line of a file says. Unknown fields are refused, so a misspelt one is never ignored."""


class DocumentLink(Line, frozen=True, kw_only=True):
    """A typed edge from the document that carries it, read as a sentence: this document supersedes `to`."""

    kind: LinkKind
    to: Identifier


class Document(Line, frozen=True, kw_only=True):
    """One text to be found. What is None is left to the write path's defaults."""

    id: Identifier
    text: Written
    title: Written | None = None
    scope: Scope | None = None
    created_at: str | None = None
    importance: Importance | None = None
    tags: tuple[Written, ...] = ()
    category: Written | None = None
    expanded_keywords: tuple[Written, ...] = ()
    sensitive: bool = False
    links: tuple[DocumentLink, ...] = ()


class Query(Line, frozen=True, kw_only=True):
    """One question, asked within `scope` where it has one. Strata are reported side by side.

    `asked_at` is the time at which it is asked: "last week" is the week before that. `outdated` are documents on the
    same matter that must not stand before the answer.
    """

    id: Identifier
    text: Written
    scope: Scope | None = None
    stratum: Written | None = None
    asked_at: str | None = None
    outdated: tuple[Identifier, ...] = ()


class Judgement(Line, frozen=True, kw_only=True):
    """How well a document answers a query: 0 not at all, and the more the better."""

    query: str
    document: str
    grade: Grade


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A corpus with its questions and their judgements. Equal content has an equal fingerprint."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    judgements: tuple[Judgement, ...]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the three files as `save` writes them, so neither name, compression nor spacing counts."""
        digest = hashlib.sha256()
        for lines in self.files().values():
            for line in lines:
                digest.update(line)
            digest.update(b"\x00")  # so that a line cannot move from one file to the next unseen
        return digest.hexdigest()

    def files(self) -> Mapping[str, Iterator[bytes]]:
        """The three files of the plain layout, by name, as lines with their ends."""
        return {
            "corpus.jsonl": _json_lines(self.documents),
            "queries.jsonl": _json_lines(self.queries),
            "qrels.tsv": (f"{row.query}\t{row.document}\t{row.grade}\n".encode() for row in self.judgements),
        }

    @cached_property
    def grades(self) -> Mapping[str, Mapping[str, int]]:
        """The grades of each query's judged documents; a query without judgements has an empty mapping."""
        grades: dict[str, dict[str, int]] = {query.id: {} for query in self.queries}
        for row in self.judgements:
            grades[row.query][row.document] = row.grade
        return grades

    @cached_property
    def unanswerable(self) -> tuple[str, ...]:
        """The queries for which no document is relevant: nothing can be measured by them."""
        return tuple(
            query.id for query in self.queries if all(grade < RELEVANT for grade in self.grades[query.id].values())
        )

    @cached_property
    def strata(self) -> Mapping[str, tuple[str, ...]]:
        """The queries of each stratum, in order of name; empty where no query names a stratum."""
        strata: dict[str, list[str]] = {}
        for query in self.queries:
            strata.setdefault(query.stratum or UNSORTED, []).append(query.id)
        if set(strata) == {UNSORTED}:
            return {}
        return {name: tuple(strata[name]) for name in sorted(strata)}


def _json_lines(values: Iterable[Line]) -> Iterator[bytes]:
    encoder = msgspec.json.Encoder()
    return (encoder.encode(value) + b"\n" for value in values)
