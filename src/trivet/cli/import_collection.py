"""`trivet lab import`: from a folder of originals, or from one large file as it is read."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trivet.cli.lab_runs import writable
from trivet.cli.progress import LateProgress
from trivet.errors import InvalidInput
from trivet.lab.catalog import FROM_FILE, import_original, imported_folder
from trivet.lab.dataset_files import save
from trivet.lab.dataset_writer import dataset_writer
from trivet.lab.originals import longmemeval


class ImportedCollection(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    folder: str
    documents: int
    queries: int
    judgements: int
    sha256: str
    left_out: int = 0  # questions without evidence

    def said(self) -> str:
        counts = {"documents": self.documents, "queries": self.queries, "judgements": self.judgements}
        listed = ", ".join(f"{count:,} {what}" for what, count in counts.items())
        left_out = f" {self.left_out:,} questions without evidence are left out." if self.left_out else ""
        return f"{self.name}: {listed} in {self.folder}.{left_out}"


def import_from_folder(
    name: str, file: Path | None, data: Path | None, out: Path | None, every: int
) -> ImportedCollection:
    if file is not None or every != 1:
        given = "FILE" if file is not None else "--every"
        raise InvalidInput(f"{given} is for {' and '.join(FROM_FILE)}. {name} is read from below --data.")
    dataset = import_original(name, data)
    folder = writable(out or imported_folder(name))
    save(dataset, folder)
    return ImportedCollection(
        name=name,
        folder=str(folder),
        documents=len(dataset.documents),
        queries=len(dataset.queries),
        judgements=len(dataset.judgements),
        sha256=dataset.fingerprint,
    )


def import_from_file(
    name: str, file: Path | None, data: Path | None, out: Path | None, every: int
) -> ImportedCollection:
    if file is None or data is not None:
        raise InvalidInput(
            f"{name} is read from one file, which nothing fetches: trivet lab import {name} FILE. "
            f"FILE is longmemeval_s_cleaned.json, or another of {longmemeval.SOURCE}."
        )
    if not file.is_file():
        raise InvalidInput(f"{file}: there is no such file. LongMemEval is at {longmemeval.SOURCE}.")
    size = file.stat().st_size
    folder = writable(out or imported_folder(name))
    with (
        LateProgress(f"bytes of {file.name}", lambda _: size) as progress,
        dataset_writer(folder) as writer,
    ):
        imported = longmemeval.read(file, writer, FROM_FILE[name], every, progress)
    written = msgspec.structs.asdict(writer.written())
    return ImportedCollection(name=name, folder=str(folder), left_out=imported.without_evidence, **written)
