"""Importers of LoCoMo, where a document is a turn, and LiHua-World, where it is a chat file."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import (
    Dataset,
    DatasetBuilder,
    Document,
    Query,
    read_json,
    relevant,
)
from trivet.lab.datasets.read_files import find_file

LOCOMO_STRATA: Mapping[int, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open",
    4: "single-hop",
    5: "adversarial",
}
# Some evidence texts hold several ids, and a few are not ids at all ("D", "D:11:26").
TURN_ID = re.compile(r"D\d+:\d+")
SESSION = re.compile(r"session_\d+")


class Turn(msgspec.Struct, frozen=True):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class LocomoQuestion(msgspec.Struct, frozen=True):
    question: str
    evidence: tuple[str, ...]
    category: int


class LocomoSample(msgspec.Struct, frozen=True):
    sample_id: str
    conversation: dict[str, Any]
    qa: tuple[LocomoQuestion, ...]


def read_locomo(data_folder: Path) -> Dataset:
    """Return LoCoMo without 5 of 1,986 questions, whose evidence names no turn."""
    path = find_file(data_folder / "locomo", "locomo10.json")
    builder = DatasetBuilder()
    for sample in read_json(path, list[LocomoSample]):
        for document in _turn_documents(path, sample):
            builder.add(document)
        for number, question in enumerate(sample.qa):
            _ask(path, builder, sample.sample_id, number, question)
    return builder.dataset("locomo")


def _turn_documents(path: Path, sample: LocomoSample) -> Iterator[Document]:
    for name, turns in sample.conversation.items():
        if not SESSION.fullmatch(name):
            continue
        created_at = _session_time(path, sample, name)
        for turn in _turns(path, sample, name, turns):
            yield Document(
                id=f"{sample.sample_id}/{turn.dia_id}",
                text=_text(turn),
                scope=sample.sample_id,
                created_at=created_at,
            )


def _text(turn: Turn) -> str:
    """Include a shared picture's caption, on which some evidence rests."""
    caption = f" [{turn.blip_caption}]" if turn.blip_caption else ""
    return f"{turn.speaker}: {turn.text}{caption}"


def _turns(path: Path, sample: LocomoSample, session: str, turns: Any) -> tuple[Turn, ...]:
    try:
        return msgspec.convert(turns, tuple[Turn, ...])
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path}: {session} of {sample.sample_id}: {error}.") from None


def _session_time(path: Path, sample: LocomoSample, session: str) -> str:
    written = sample.conversation.get(f"{session}_date_time")
    try:
        return datetime.strptime(str(written), "%I:%M %p on %d %B, %Y").isoformat() + "Z"
    except ValueError:
        raise InvalidInput(
            f"{path}: {session} of {sample.sample_id}: {written!r} is not a time such as "
            "'1:56 pm on 8 May, 2023'."
        ) from None


def _ask(
    path: Path, builder: DatasetBuilder, scope: str, number: int, question: LocomoQuestion
) -> None:
    if question.category not in LOCOMO_STRATA:
        raise InvalidInput(
            f"{path}: question {number} of {scope}: category {question.category} is not 1 to 5."
        )
    named = (
        f"{scope}/{turn}" for evidence in question.evidence for turn in TURN_ID.findall(evidence)
    )
    grades = relevant(turn for turn in named if turn in builder.documents)
    if grades:
        stratum = LOCOMO_STRATA[question.category]
        query = Query(id=f"{scope}/q{number}", text=question.question, scope=scope, stratum=stratum)
        builder.ask(query, grades)


LIHUA_STRATA: Mapping[str, str] = {
    "Single": "single-hop",
    "Multi": "multi-hop",
    "Null": "unanswerable",
}
BETWEEN_EVIDENCE = re.compile(r"<and>|<or>")
CHAT_NAME = re.compile(r"\d{8}(_\d{4})?")


class LihuaQuestion(msgspec.Struct, frozen=True):
    question: str
    evidence: str
    type: str


def read_lihua(data_folder: Path) -> Dataset:
    """Return the questions whose evidence names a chat; `<and>` and `<or>` both count."""
    return _read_lihua(data_folder, unanswerable=False)


def read_lihua_with_unanswerable(data_folder: Path) -> Dataset:
    return _read_lihua(data_folder, unanswerable=True)


def _read_lihua(data_folder: Path, unanswerable: bool) -> Dataset:
    folder = data_folder / "lihua"
    builder = DatasetBuilder()
    for document in _chat_documents(folder / "LiHuaWorld.zip"):
        builder.add(document)
    path = find_file(folder, "query_set.json")
    for number, question in read_json(path, dict[str, LihuaQuestion]).items():
        if question.type not in LIHUA_STRATA:
            raise InvalidInput(
                f"{path}: question {number}: type {question.type!r} is not one of "
                f"{', '.join(LIHUA_STRATA)}."
            )
        grades = relevant(name for name in _evidence(question) if name in builder.documents)
        if grades or (unanswerable and question.type == "Null"):
            query = Query(
                id=f"q{number}", text=question.question, stratum=LIHUA_STRATA[question.type]
            )
            builder.ask(query, grades)
    return builder.dataset("lihua-unanswerable" if unanswerable else "lihua")


def _evidence(question: LihuaQuestion) -> Iterator[str]:
    for part in BETWEEN_EVIDENCE.split(question.evidence):
        yield part.strip().removeprefix("Time:").strip().replace(":", "")


def _chat_documents(path: Path) -> Iterator[Document]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
            chats = [(PurePosixPath(name).stem, archive.read(name).decode()) for name in names]
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such file.") from None
    except (zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: not a zip file of UTF-8 texts ({error}).") from None
    for name, chat in sorted(chats):
        if not CHAT_NAME.fullmatch(name):
            raise InvalidInput(
                f"{path}: {name}.txt is not named by a date, such as 20260118_1200.txt."
            )
        yield Document(id=name, text=chat.strip(), created_at=_chat_time(name))


def _chat_time(name: str) -> str:
    date, _, hour = name.partition("_")
    return datetime.strptime(date + (hour or "0000"), "%Y%m%d%H%M").isoformat() + "Z"
