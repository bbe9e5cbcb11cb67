"""Writes a dataset as it is read, for collections that do not fit into memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from trivet.atomic_write import atomic_write
from trivet.lab.dataset import Document, Query


class WrittenDataset(msgspec.Struct, frozen=True, kw_only=True):
    """What was written. `sha256` is the fingerprint that the dataset has when it is loaded."""

    documents: int
    queries: int
    judgements: int
    sha256: str


class DatasetWriter:
    """Documents go to the disk at once; questions and judgements, of which there are few, are kept until the end."""

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
        self.judgements.extend(f"{query.id}\t{document}\t{grade}\n".encode() for document, grade in grades.items())

    def written(self) -> WrittenDataset:
        digest = self._digest.copy()
        for lines in ([], self.queries, self.judgements):  # as Dataset.fingerprint goes over the three files
            digest.update(b"".join(lines) + b"\x00")
        return WrittenDataset(
            documents=self._documents,
            queries=len(self.queries),
            judgements=len(self.judgements),
            sha256=digest.hexdigest(),
        )


@contextmanager
def dataset_writer(folder: Path) -> Iterator[DatasetWriter]:
    """A writer whose dataset takes the place of what is in the folder when the block ends without an error."""
    with atomic_write(folder / "corpus.jsonl") as corpus:
        writer = DatasetWriter(corpus)
        yield writer
        (folder / "queries.jsonl").write_bytes(b"".join(writer.queries))
        (folder / "qrels.tsv").write_bytes(b"".join(writer.judgements))
        for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
            (folder / f"{name}.gz").unlink(missing_ok=True)
