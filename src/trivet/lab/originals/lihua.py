"""LiHua-World: a year of one person's chats. A document is a chat file, named in the evidence by its date and hour."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.dataset import Dataset, Document, Query
from trivet.lab.originals.source import Gathering, read_json, relevant
from trivet.lab.read_files import existing

STRATA: Mapping[str, str] = {"Single": "single-hop", "Multi": "multi-hop", "Null": "unanswerable"}
BETWEEN_EVIDENCE = re.compile(r"<and>|<or>")
CHAT_NAME = re.compile(r"\d{8}(_\d{4})?")


class Question(msgspec.Struct, frozen=True):
    question: str
    evidence: str
    type: str


def read(data_folder: Path) -> Dataset:
    """The questions whose evidence names a chat; the files of `<and>` and of `<or>` all count as relevant."""
    return _read(data_folder, unanswerable=False)


def read_with_unanswerable(data_folder: Path) -> Dataset:
    """As `read`, and the questions that no chat answers besides, in a stratum of their own."""
    return _read(data_folder, unanswerable=True)


def _read(data_folder: Path, unanswerable: bool) -> Dataset:
    folder = data_folder / "lihua"
    gathering = Gathering()
    for document in _documents(folder / "LiHuaWorld.zip"):
        gathering.add(document)
    path = existing(folder, "query_set.json")
    for number, question in read_json(path, dict[str, Question]).items():
        if question.type not in STRATA:
            raise InvalidInput(f"{path}: question {number}: type {question.type!r} is none of {', '.join(STRATA)}.")
        grades = relevant(name for name in _evidence(question) if name in gathering.documents)
        if grades or (unanswerable and question.type == "Null"):
            query = Query(id=f"q{number}", text=question.question, stratum=STRATA[question.type])
            gathering.ask(query, grades)
    return gathering.dataset("lihua-unanswerable" if unanswerable else "lihua")


def _evidence(question: Question) -> Iterator[str]:
    """`Time: 20260930_16:00` and `20260930_16:00` both name the chat 20260930_1600."""
    for part in BETWEEN_EVIDENCE.split(question.evidence):
        yield part.strip().removeprefix("Time:").strip().replace(":", "")


def _documents(path: Path) -> Iterator[Document]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
            chats = [(PurePosixPath(name).stem, archive.read(name).decode()) for name in names]
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such file.") from None
    except (zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: it is not a zip of UTF-8 texts ({error}).") from None
    for name, chat in sorted(chats):
        if not CHAT_NAME.fullmatch(name):
            raise InvalidInput(f"{path}: {name}.txt is not named by its date, such as 20260118_1200.txt.")
        yield Document(id=name, text=chat.strip(), created_at=_time(name))


def _time(name: str) -> str:
    date, _, hour = name.partition("_")
    return datetime.strptime(date + (hour or "0000"), "%Y%m%d%H%M").isoformat() + "Z"
