"""The judgements beside the arms: `run` puts a copy of qrels.tsv there, so that what it wrote explains itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trivet.errors import InvalidInput
from trivet.lab.dataset_types import Dataset
from trivet.lab.find_dataset import find_dataset
from trivet.lab.layout import read_judgements
from trivet.lab.saved_runs import WrittenArm

Grades = Mapping[str, Mapping[str, int]]

FILE = "qrels.tsv"


def write_grades(dataset: Dataset, folder: Path) -> None:
    (folder / FILE).write_bytes(b"".join(dataset.files()[FILE]))


def grades_of(arm: WrittenArm) -> Grades | None:
    """The judgements the arm was measured by, from beside it or from the dataset; None if they are not here."""
    beside = arm.folder / ".." / FILE
    if beside.is_file():
        return _read(beside)
    try:
        dataset = find_dataset(arm.manifest.dataset)
    except InvalidInput:
        return None  # it was a folder of the user's, now out of sight: what needs grades says that it has none
    return dataset.grades if dataset.fingerprint == arm.manifest.dataset_sha256 else None


def _read(path: Path) -> Grades:
    grades: dict[str, dict[str, int]] = {}
    for row in read_judgements(path, queries=_Anything(), documents=_Anything()):
        grades.setdefault(row.query, {})[row.document] = row.grade
    return grades


class _Anything:
    """Holds every id: which ids there are was checked when the dataset was measured."""

    def __contains__(self, id: object) -> bool:
        return True
