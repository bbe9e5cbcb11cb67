"""LoCoMo: ten long conversations. A document is a turn, a scope a conversation, a stratum a category of question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.dataset import Dataset, Document, Query
from trivet.lab.originals.source import Gathering, read_json, relevant
from trivet.lab.read_files import existing

STRATA: Mapping[int, str] = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
# Some evidence holds several ids in one text, and a few are no ids at all ("D", "D:11:26").
TURN_ID = re.compile(r"D\d+:\d+")
SESSION = re.compile(r"session_\d+")


class Turn(msgspec.Struct, frozen=True):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class Question(msgspec.Struct, frozen=True):
    question: str
    evidence: tuple[str, ...]
    category: int


class Sample(msgspec.Struct, frozen=True):
    sample_id: str
    conversation: dict[str, Any]
    qa: tuple[Question, ...]


def read(data_folder: Path) -> Dataset:
    """Questions whose evidence names no turn that exists are left out: 1,981 of 1,986 remain in the original."""
    path = existing(data_folder / "locomo", "locomo10.json")
    gathering = Gathering()
    for sample in read_json(path, list[Sample]):
        for document in _documents(path, sample):
            gathering.add(document)
        for number, question in enumerate(sample.qa):
            _ask(path, gathering, sample.sample_id, number, question)
    return gathering.dataset("locomo")


def _documents(path: Path, sample: Sample) -> Iterator[Document]:
    for name, turns in sample.conversation.items():
        if not SESSION.fullmatch(name):
            continue
        created_at = _time(path, sample, name)
        for turn in _turns(path, sample, name, turns):
            yield Document(
                id=f"{sample.sample_id}/{turn.dia_id}",
                text=_text(turn),
                scope=sample.sample_id,
                created_at=created_at,
            )


def _text(turn: Turn) -> str:
    """The speaker and the words, with the caption of a shared picture, which some evidence rests on."""
    caption = f" [{turn.blip_caption}]" if turn.blip_caption else ""
    return f"{turn.speaker}: {turn.text}{caption}"


def _turns(path: Path, sample: Sample, session: str, turns: Any) -> tuple[Turn, ...]:
    try:
        return msgspec.convert(turns, tuple[Turn, ...])
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path}: {session} of {sample.sample_id}: {error}.") from None


def _time(path: Path, sample: Sample, session: str) -> str:
    written = sample.conversation.get(f"{session}_date_time")
    try:
        return datetime.strptime(str(written), "%I:%M %p on %d %B, %Y").isoformat() + "Z"
    except ValueError:
        raise InvalidInput(
            f"{path}: {session} of {sample.sample_id}: {written!r} is not a time such as '1:56 pm on 8 May, 2023'."
        ) from None


def _ask(path: Path, gathering: Gathering, scope: str, number: int, question: Question) -> None:
    if question.category not in STRATA:
        raise InvalidInput(f"{path}: question {number} of {scope}: category {question.category} is not 1 to 5.")
    named = (f"{scope}/{turn}" for evidence in question.evidence for turn in TURN_ID.findall(evidence))
    grades = relevant(turn for turn in named if turn in gathering.documents)
    if grades:
        stratum = STRATA[question.category]
        query = Query(id=f"{scope}/q{number}", text=question.question, scope=scope, stratum=stratum)
        gathering.ask(query, grades)
