"""Datasets in one plain layout: a folder with corpus.jsonl, queries.jsonl and qrels.tsv, each optionally gzipped."""

from __future__ import annotations

import gzip
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.dataset_types import Dataset, Document, DocumentLink, Judgement, Query
from trivet.lab.layout import line_of, read_documents, read_judgements, read_queries
from trivet.lab.read_files import existing, json_lines, refuse

__all__ = ["Dataset", "Document", "DocumentLink", "Judgement", "Query", "house", "load", "save"]


def load(folder: Path | str, *, allow_unanswerable: bool = False) -> Dataset:
    """The dataset in a folder, checked. A query without a relevant document is an error unless it is allowed."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidInput(f"{folder}: there is no such folder. Give one with corpus.jsonl, queries.jsonl, qrels.tsv.")
    documents = read_documents(existing(folder, "corpus.jsonl"))
    return _with_questions(folder.resolve().name, documents, folder, allow_unanswerable)


def save(dataset: Dataset, folder: Path | str, *, compress: bool = False) -> None:
    """Writes the dataset in the plain layout, in place of one that is there."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in dataset.files().items():
        plain, packed = folder / name, folder / f"{name}.gz"
        data = b"".join(lines)
        if compress:
            packed.write_bytes(gzip.compress(data, mtime=0))  # no time inside: equal data gives equal files
        else:
            plain.write_bytes(data)
        (plain if compress else packed).unlink(missing_ok=True)


def house() -> Dataset:
    """The set of our own: questions over the demo's memories, which keep their links."""
    with as_file(files("trivet.lab") / "house" / "memories.jsonl") as path:
        documents = tuple(_document(path, number, memory) for number, memory in json_lines(path, _DemoMemory))
    with as_file(files("trivet.lab") / "house") as folder:
        return _with_questions("house", documents, folder, allow_unanswerable=False)


def _with_questions(name: str, documents: tuple[Document, ...], folder: Path, allow_unanswerable: bool) -> Dataset:
    path = existing(folder, "queries.jsonl")
    queries = read_queries(path)
    judgements = read_judgements(
        existing(folder, "qrels.tsv"),
        queries={query.id for query in queries.values()},
        documents={document.id for document in documents},
    )
    dataset = Dataset(name=name, documents=documents, queries=tuple(queries.values()), judgements=judgements)
    if dataset.unanswerable and not allow_unanswerable:
        query = dataset.unanswerable[0]
        refuse(
            path, line_of(queries, query), f"query {query!r} has no relevant document in qrels.tsv. Judge one for it."
        )
    return dataset


class _DemoMemory(msgspec.Struct, frozen=True):
    """A memory of the demo as far as the lab measures it; its other fields are left out."""

    id: str
    content: str
    title: str | None = None
    scope: str | None = None
    created_at: str | None = None
    importance: float | None = None
    tags: tuple[str, ...] = ()
    category: str | None = None
    expanded_keywords: tuple[str, ...] = ()
    sensitive: bool = False
    links: tuple[DocumentLink, ...] = ()


def _document(path: Path, number: int, memory: _DemoMemory) -> Document:
    fields = msgspec.structs.asdict(memory)
    try:
        return msgspec.convert({"text": fields.pop("content"), **fields}, Document)
    except msgspec.ValidationError as error:
        refuse(path, number, str(error))
