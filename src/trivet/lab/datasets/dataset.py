"""Documents, queries and graded judgments, and the tools importers share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, BinaryIO, TypeVar

import msgspec
from msgspec import Meta

from trivet.common.files import atomic_write
from trivet.contract import Importance, Scope
from trivet.errors import InvalidInput
from trivet.lab.datasets.read_files import content
from trivet.types import LinkKind, Value

# No spaces: ids become columns of `run.trec`, which spaces separate.
Identifier = Annotated[str, Meta(min_length=1, pattern=r"^\S+$(?!\n)")]
Written = Annotated[str, Meta(min_length=1, pattern=r"\S")]
Grade = Annotated[int, Meta(ge=0)]

# Lowest grade of a relevant document; 0 means judged and not relevant.
RELEVANT = 1
# Stratum of a query without one, in a dataset where other queries have one.
NO_STRATUM = "(no stratum)"


class Line(Value, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the line types; unknown fields are errors, so a misspelled one is noticed."""


class DocumentLink(Line, frozen=True, kw_only=True):
    """A typed edge from the document that carries it."""

    kind: LinkKind
    to: Identifier


class Document(Line, frozen=True, kw_only=True):
    """One text to find; the write path's default replaces None."""

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
    """One question; `outdated` documents must not rank above the answer."""

    id: Identifier
    text: Written
    scope: Scope | None = None
    stratum: Written | None = None
    asked_at: str | None = None
    outdated: tuple[Identifier, ...] = ()


class Judgement(Line, frozen=True, kw_only=True):
    """A grade of 0 (not relevant) or higher."""

    query: str
    document: str
    grade: Grade


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A corpus with judged queries; equal content has an equal fingerprint."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    judgements: tuple[Judgement, ...]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the three files, without name and compression."""
        digest = hashlib.sha256()
        for lines in self.files().values():
            for line in lines:
                digest.update(line)
            # A separator, so a line cannot move from one file to the next with the same hash.
            digest.update(b"\x00")
        return digest.hexdigest()

    def files(self) -> Mapping[str, Iterator[bytes]]:
        return {
            "corpus.jsonl": _json_lines(self.documents),
            "queries.jsonl": _json_lines(self.queries),
            "qrels.tsv": (
                f"{row.query}\t{row.document}\t{row.grade}\n".encode() for row in self.judgements
            ),
        }

    @cached_property
    def grades(self) -> Mapping[str, Mapping[str, int]]:
        grades: dict[str, dict[str, int]] = {query.id: {} for query in self.queries}
        for row in self.judgements:
            grades[row.query][row.document] = row.grade
        return grades

    @cached_property
    def unanswerable(self) -> tuple[str, ...]:
        return tuple(
            query.id
            for query in self.queries
            if all(grade < RELEVANT for grade in self.grades[query.id].values())
        )

    @cached_property
    def strata(self) -> Mapping[str, tuple[str, ...]]:
        """Query ids by stratum; empty if none is named."""
        strata: dict[str, list[str]] = {}
        for query in self.queries:
            strata.setdefault(query.stratum or NO_STRATUM, []).append(query.id)
        if set(strata) == {NO_STRATUM}:
            return {}
        return {name: tuple(strata[name]) for name in sorted(strata)}


def _json_lines(values: Iterable[Line]) -> Iterator[bytes]:
    encoder = msgspec.json.Encoder()
    return (encoder.encode(value) + b"\n" for value in values)


T = TypeVar("T")


def read_json(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content(path), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: {error}. The importer expects another file.") from None


class DatasetBuilder:
    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self._queries: list[Query] = []
        self._judgements: list[Judgement] = []

    def add(self, document: Document) -> None:
        self.documents[document.id] = document

    def ask(self, query: Query, grades: Mapping[str, int]) -> None:
        self._queries.append(query)
        self._judgements.extend(
            Judgement(query=query.id, document=document, grade=grade)
            for document, grade in grades.items()
        )

    def dataset(self, name: str) -> Dataset:
        return Dataset(
            name=name,
            documents=tuple(self.documents.values()),
            queries=tuple(self._queries),
            judgements=tuple(self._judgements),
        )


def relevant(documents: Iterable[str]) -> dict[str, int]:
    """Grade each document 1."""
    return dict.fromkeys(documents, 1)


class WrittenDataset(msgspec.Struct, frozen=True, kw_only=True):
    documents: int
    queries: int
    judgements: int
    sha256: str


class DatasetWriter:
    def __init__(self, corpus: BinaryIO) -> None:
        self._corpus = corpus
        self._digest = hashlib.sha256()
        self._encoder = msgspec.json.Encoder()
        self._documents = 0
        self.queries: list[bytes] = []
        self.judgements: list[bytes] = []

    def add(self, documents: Iterable[Document]) -> None:
        for document in documents:
            line = self._encoder.encode(document) + b"\n"
            self._corpus.write(line)
            self._digest.update(line)
            self._documents += 1

    def ask(self, query: Query, grades: Mapping[str, int]) -> None:
        self.queries.append(self._encoder.encode(query) + b"\n")
        self.judgements.extend(
            f"{query.id}\t{document}\t{grade}\n".encode() for document, grade in grades.items()
        )

    def written(self) -> WrittenDataset:
        digest = self._digest.copy()
        # The same order and separators as in Dataset.fingerprint, which already covers the
        # documents.
        for lines in ([], self.queries, self.judgements):
            digest.update(b"".join(lines) + b"\x00")
        return WrittenDataset(
            documents=self._documents,
            queries=len(self.queries),
            judgements=len(self.judgements),
            sha256=digest.hexdigest(),
        )


@contextmanager
def dataset_writer(folder: Path) -> Iterator[DatasetWriter]:
    """Yield a writer; replace the folder only if the block succeeds."""
    with atomic_write(folder / "corpus.jsonl") as corpus:
        writer = DatasetWriter(corpus)
        yield writer
        (folder / "queries.jsonl").write_bytes(b"".join(writer.queries))
        (folder / "qrels.tsv").write_bytes(b"".join(writer.judgements))
        for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
            (folder / f"{name}.gz").unlink(missing_ok=True)
