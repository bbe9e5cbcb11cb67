"""CoSQA: web queries for Python functions. A document is a function with its docstring."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.dataset import Dataset, Document, Query
from trivet.lab.originals.source import Gathering, read_json, relevant
from trivet.lab.read_files import existing


class Question(msgspec.Struct, frozen=True):
    idx: str
    doc: str
    retrieval_idx: int


def read(data_folder: Path) -> Dataset:
    """The 500 development questions, each with one function that answers it."""
    folder = data_folder / "cosqa"
    gathering = Gathering()
    for code, number in read_json(existing(folder, "code_idx_map.txt"), dict[str, int]).items():
        gathering.add(Document(id=f"f{number}", text=code))
    path = existing(folder, "cosqa-retrieval-dev-500.json")
    for question in read_json(path, list[Question]):
        function = f"f{question.retrieval_idx}"
        if function not in gathering.documents:
            raise InvalidInput(
                f"{path}: question {question.idx}: function {question.retrieval_idx} is not in the code map."
            )
        gathering.ask(Query(id=question.idx, text=question.doc), relevant([function]))
    return gathering.dataset("cosqa")
