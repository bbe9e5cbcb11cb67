"""The plain layout: a folder with corpus.jsonl, queries.jsonl and qrels.tsv, each maybe gzipped."""

from __future__ import annotations

import gzip
import re
from collections.abc import Container, Mapping
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from trivet.common.clock import parse_time
from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import Dataset, Document, DocumentLink, Judgement, Query
from trivet.lab.datasets.read_files import (
    find_file,
    json_lines,
    raise_line_error,
    text_lines,
    with_unique_ids,
)
from trivet.settings import cache_folder

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


def read_documents(path: Path) -> tuple[Document, ...]:
    lines = dict(with_unique_ids(path, json_lines(path, Document)))
    known = {document.id for document in lines.values()}
    for number, document in lines.items():
        if document.created_at is not None:
            _check_time(path, number, document.created_at)
        for link in document.links:
            if link.to not in known:
                raise_line_error(
                    path, number, f"links: there is no document {link.to!r} in this corpus."
                )
    if not lines:
        raise InvalidInput(f"{path}: there is no document in it.")
    return tuple(lines.values())


def read_queries(path: Path) -> dict[int, Query]:
    """Return the queries by line number."""
    lines = dict(with_unique_ids(path, json_lines(path, Query)))
    if not lines:
        raise InvalidInput(f"{path}: there is no query in it.")
    return lines


def read_judgements(
    path: Path, queries: Container[str], documents: Container[str]
) -> tuple[Judgement, ...]:
    first_line: dict[tuple[str, str], int] = {}
    judgements = []
    for number, line in text_lines(path):
        fields = [field.strip() for field in line.split("\t")]
        if number == 1 and _is_header(fields, queries):
            continue
        judgement = _judgement(path, number, fields)
        if judgement.query not in queries:
            raise_line_error(
                path, number, f"there is no query {judgement.query!r} in queries.jsonl."
            )
        if judgement.document not in documents:
            raise_line_error(
                path, number, f"there is no document {judgement.document!r} in corpus.jsonl."
            )
        pair = (judgement.query, judgement.document)
        if pair in first_line:
            raise_line_error(
                path,
                number,
                f"query {pair[0]!r} and document {pair[1]!r} were judged on line "
                f"{first_line[pair]}.",
            )
        first_line[pair] = number
        judgements.append(judgement)
    return tuple(judgements)


def _check_time(path: Path, number: int, time: str) -> None:
    try:
        parse_time(time, "created_at")
    except InvalidInput as error:
        raise_line_error(path, number, str(error))


def _is_header(fields: list[str], queries: Container[str]) -> bool:
    """Treat a line that starts with a known query as a judgment, even with a bad grade."""
    return len(fields) == 3 and not WHOLE_NUMBER.fullmatch(fields[2]) and fields[0] not in queries


def _judgement(path: Path, number: int, fields: list[str]) -> Judgement:
    if len(fields) != 3:
        raise_line_error(
            path,
            number,
            f"{len(fields)} columns, not 3: query, document and grade, separated by tabs.",
        )
    query, document, grade = fields
    if not WHOLE_NUMBER.fullmatch(grade):
        raise_line_error(
            path,
            number,
            f"grade {grade!r} is not a whole number. Grades are 0 (not relevant), 1, 2, ...",
        )
    if int(grade) < 0:
        raise_line_error(
            path, number, f"grade {grade} is negative. Grades are 0 (not relevant), 1, 2, ..."
        )
    return Judgement(query=query, document=document, grade=int(grade))


def line_of(queries: Mapping[int, Query], identifier: str) -> int:
    return next(number for number, query in queries.items() if query.id == identifier)


__all__ = [
    "Dataset",
    "Document",
    "DocumentLink",
    "Judgement",
    "Query",
    "collection",
    "house",
    "lives",
    "load",
    "mixed",
    "save",
]


def load(folder: Path | str, *, allow_unanswerable: bool = False) -> Dataset:
    """Load and check a dataset; by default each query needs a relevant document."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidInput(
            f"{folder}: there is no such folder. Give one with corpus.jsonl, queries.jsonl, "
            "qrels.tsv."
        )
    documents = read_documents(find_file(folder, "corpus.jsonl"))
    return _with_questions(folder.resolve().name, documents, folder, allow_unanswerable)


def save(dataset: Dataset, folder: Path | str, *, compress: bool = False) -> None:
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in dataset.files().items():
        plain, packed = folder / name, folder / f"{name}.gz"
        data = b"".join(lines)
        if compress:
            # mtime=0: equal data gives equal files.
            packed.write_bytes(gzip.compress(data, mtime=0))
        else:
            plain.write_bytes(data)
        (plain if compress else packed).unlink(missing_ok=True)


def house() -> Dataset:
    """Return questions over the demo's memories."""
    with as_file(files("trivet.lab") / "house" / "memories.jsonl") as path:
        documents = tuple(
            _document(path, number, memory) for number, memory in json_lines(path, _DemoMemory)
        )
    with as_file(files("trivet.lab") / "house") as folder:
        return _with_questions("house", documents, folder, allow_unanswerable=False)


def lives(half: str = "") -> tuple[Dataset, ...]:
    """Return the made-up lives, one dataset per life: `dev`, `test`, or all."""
    with as_file(files("trivet.lab") / "lives") as folder:
        return (
            collection(folder / half)
            if half
            else (*collection(folder / "dev"), *collection(folder / "test"))
        )


def mixed(half: str) -> Dataset:
    """Return short and long memories, separated by scope (`dev` or `test`)."""
    with as_file(files("trivet.lab") / "mixed" / half) as folder:
        documents = read_documents(folder / "corpus.jsonl")
        return _with_questions(f"mixed-{half}", documents, folder, allow_unanswerable=True)


def collection(folder: Path | str) -> tuple[Dataset, ...]:
    folder = Path(folder)
    if any((folder / name).exists() for name in ("corpus.jsonl", "corpus.jsonl.gz")):
        return (load(folder, allow_unanswerable=True),)
    below = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if not below:
        raise InvalidInput(f"{folder}: it holds no dataset, and no folder with a dataset.")
    return tuple(load(path, allow_unanswerable=True) for path in below)


def _with_questions(
    name: str, documents: tuple[Document, ...], folder: Path, allow_unanswerable: bool
) -> Dataset:
    path = find_file(folder, "queries.jsonl")
    queries = read_queries(path)
    judgements = read_judgements(
        find_file(folder, "qrels.tsv"),
        queries={query.id for query in queries.values()},
        documents={document.id for document in documents},
    )
    dataset = Dataset(
        name=name, documents=documents, queries=tuple(queries.values()), judgements=judgements
    )
    if dataset.unanswerable and not allow_unanswerable:
        query = dataset.unanswerable[0]
        raise_line_error(
            path,
            line_of(queries, query),
            f"query {query!r} has no relevant document in qrels.tsv. Judge one for it.",
        )
    return dataset


class _DemoMemory(msgspec.Struct, frozen=True):
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
        raise_line_error(path, number, str(error))


def lab_folder() -> Path:
    return cache_folder() / "lab"
