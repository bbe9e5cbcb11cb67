"""HotpotQA, the 1,000 questions HippoRAG uses: a document is a titled passage, a stratum the type of question."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.dataset_types import Dataset, Document, Query
from trivet.lab.originals.source import Gathering, read_json, relevant
from trivet.lab.read_files import existing


class Question(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    question: str
    supporting_facts: tuple[tuple[str, int], ...]
    type: str


def read(data_folder: Path) -> Dataset:
    """Some questions are drawn twice in HippoRAG's sample; they are kept, told apart by a number after the id."""
    folder = data_folder / "multihop"
    gathering = Gathering()
    identifiers: dict[str, str] = {}
    corpus = read_json(existing(folder, "hotpotqa_corpus.json"), dict[str, list[str]])
    for number, (title, sentences) in enumerate(corpus.items()):
        identifiers[title] = f"p{number}"
        gathering.add(Document(id=f"p{number}", title=title, text="".join(sentences).strip()))
    path = existing(folder, "hotpotqa.json")
    drawn: Counter[str] = Counter()
    for question in read_json(path, list[Question]):
        drawn[question.id] += 1
        suffix = f"-{drawn[question.id]}" if drawn[question.id] > 1 else ""
        query = Query(id=question.id + suffix, text=question.question, stratum=question.type)
        gathering.ask(query, relevant(_supporting(path, question, identifiers)))
    return gathering.dataset("hotpotqa")


def _supporting(path: Path, question: Question, identifiers: dict[str, str]) -> list[str]:
    titles = [title for title, _ in question.supporting_facts]
    if not titles:
        raise InvalidInput(f"{path}: question {question.id} has no supporting fact.")
    missing = [title for title in titles if title not in identifiers]
    if missing:
        raise InvalidInput(f"{path}: question {question.id}: its passage {missing[0]!r} is not in the corpus.")
    return [identifiers[title] for title in titles]
