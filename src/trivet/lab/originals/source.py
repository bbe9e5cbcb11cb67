"""What the importers share: typed reading of JSON and gathering of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.dataset import Dataset, Document, Judgement, Query
from trivet.lab.read_files import content

T = TypeVar("T")


def read_json(path: Path, kind: type[T]) -> T:
    """The content of a JSON file as the type it must have."""
    try:
        return msgspec.json.decode(content(path), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: {error}. It is not the file the importer knows.") from None


class Gathering:
    """Collects what an importer reads; the judgements of a query keep the order they were given in."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self._queries: list[Query] = []
        self._judgements: list[Judgement] = []

    def add(self, document: Document) -> None:
        self.documents[document.id] = document

    def ask(self, query: Query, grades: Mapping[str, int]) -> None:
        self._queries.append(query)
        self._judgements.extend(
            Judgement(query=query.id, document=document, grade=grade) for document, grade in grades.items()
        )

    def dataset(self, name: str) -> Dataset:
        return Dataset(
            name=name,
            documents=tuple(self.documents.values()),
            queries=tuple(self._queries),
            judgements=tuple(self._judgements),
        )


def relevant(documents: Iterable[str]) -> dict[str, int]:
    """Plain relevance: each document once, with grade 1."""
    return dict.fromkeys(documents, 1)
