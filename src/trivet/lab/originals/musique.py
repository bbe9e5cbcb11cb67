"""MuSiQue, the 1,000 questions HippoRAG uses: a document is a passage, a stratum the number of hops."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.dataset_types import Dataset, Document, Query
from trivet.lab.originals.source import Gathering, read_json, relevant
from trivet.lab.read_files import existing


class Passage(msgspec.Struct, frozen=True):
    title: str
    text: str


class Paragraph(msgspec.Struct, frozen=True):
    title: str
    paragraph_text: str
    is_supporting: bool


class Question(msgspec.Struct, frozen=True):
    id: str
    question: str
    paragraphs: tuple[Paragraph, ...]


def read(data_folder: Path) -> Dataset:
    """A passage is known by its title and text together: many passages share a title."""
    folder = data_folder / "multihop"
    gathering = Gathering()
    identifiers: dict[tuple[str, str], str] = {}
    for number, passage in enumerate(read_json(existing(folder, "musique_corpus.json"), list[Passage])):
        identifiers[passage.title, passage.text] = f"p{number}"
        gathering.add(Document(id=f"p{number}", title=passage.title, text=passage.text))
    path = existing(folder, "musique.json")
    for question in read_json(path, list[Question]):
        grades = relevant(_supporting(path, question, identifiers))
        stratum = f"{len(grades)}-hop"
        gathering.ask(Query(id=question.id, text=question.question, stratum=stratum), grades)
    return gathering.dataset("musique")


def _supporting(path: Path, question: Question, identifiers: dict[tuple[str, str], str]) -> list[str]:
    supporting = [(one.title, one.paragraph_text) for one in question.paragraphs if one.is_supporting]
    if not supporting:
        raise InvalidInput(f"{path}: question {question.id} has no supporting paragraph.")
    missing = [title for title, text in supporting if (title, text) not in identifiers]
    if missing:
        raise InvalidInput(f"{path}: question {question.id}: its passage {missing[0]!r} is not in the corpus.")
    return [identifiers[key] for key in supporting]
