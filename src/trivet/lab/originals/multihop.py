"""HotpotQA and MuSiQue, the 1,000 questions each that HippoRAG uses: a document is a titled passage.

The strata are the type of question (HotpotQA) and the number of hops (MuSiQue).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.dataset import Dataset, Document, Query
from trivet.lab.originals.source import Gathering, read_json, relevant
from trivet.lab.read_files import existing

FOLDER = "multihop"

Key = TypeVar("Key", str, tuple[str, str])


class HotpotQuestion(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    question: str
    supporting_facts: tuple[tuple[str, int], ...]
    type: str


class Passage(msgspec.Struct, frozen=True):
    title: str
    text: str


class Paragraph(msgspec.Struct, frozen=True):
    title: str
    paragraph_text: str
    is_supporting: bool


class MusiqueQuestion(msgspec.Struct, frozen=True):
    id: str
    question: str
    paragraphs: tuple[Paragraph, ...]


def read_hotpotqa(data_folder: Path) -> Dataset:
    """HippoRAG's sample draws some questions twice. Both are kept; a number after the id tells them apart."""
    gathering = Gathering()
    identifiers: dict[str, str] = {}
    corpus = read_json(existing(data_folder / FOLDER, "hotpotqa_corpus.json"), dict[str, list[str]])
    for number, (title, sentences) in enumerate(corpus.items()):
        identifiers[title] = f"p{number}"
        gathering.add(Document(id=f"p{number}", title=title, text="".join(sentences).strip()))
    path = existing(data_folder / FOLDER, "hotpotqa.json")
    drawn: Counter[str] = Counter()
    for question in read_json(path, list[HotpotQuestion]):
        drawn[question.id] += 1
        suffix = f"-{drawn[question.id]}" if drawn[question.id] > 1 else ""
        query = Query(id=question.id + suffix, text=question.question, stratum=question.type)
        titles = [(title, title) for title, _ in question.supporting_facts]
        if not titles:
            raise InvalidInput(f"{path}: question {question.id} has no supporting fact.")
        gathering.ask(query, relevant(_found(path, question.id, titles, identifiers)))
    return gathering.dataset("hotpotqa")


def read_musique(data_folder: Path) -> Dataset:
    """A passage is known by its title and text together: many passages share a title."""
    gathering = Gathering()
    identifiers: dict[tuple[str, str], str] = {}
    for number, passage in enumerate(read_json(existing(data_folder / FOLDER, "musique_corpus.json"), list[Passage])):
        identifiers[passage.title, passage.text] = f"p{number}"
        gathering.add(Document(id=f"p{number}", title=passage.title, text=passage.text))
    path = existing(data_folder / FOLDER, "musique.json")
    for question in read_json(path, list[MusiqueQuestion]):
        supporting = [(one.title, (one.title, one.paragraph_text)) for one in question.paragraphs if one.is_supporting]
        if not supporting:
            raise InvalidInput(f"{path}: question {question.id} has no supporting paragraph.")
        grades = relevant(_found(path, question.id, supporting, identifiers))
        gathering.ask(Query(id=question.id, text=question.question, stratum=f"{len(grades)}-hop"), grades)
    return gathering.dataset("musique")


def _found(path: Path, question: str, passages: Sequence[tuple[str, Key]], identifiers: Mapping[Key, str]) -> list[str]:
    """The ids of passages, each given by its title and the key it is known by."""
    missing = [title for title, key in passages if key not in identifiers]
    if missing:
        raise InvalidInput(f"{path}: question {question}: its passage {missing[0]!r} is not in the corpus.")
    return [identifiers[key] for _, key in passages]
