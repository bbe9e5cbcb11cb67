"""Importer of LongMemEval: each question has its own history of sessions, and so its own scope.

A document is a turn or, with `by="session"`, a transcript.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from trivet.contract import Scope
from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import (
    DatasetWriter,
    Document,
    Identifier,
    Query,
    Written,
    relevant,
)
from trivet.lab.datasets.read_files import list_elements
from trivet.types import Progress

By = Literal["turn", "session"]
SOURCE = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned"
ABSTAIN = "_abs"
ABSTENTION = "abstention"
# For example 2023/05/20 (Sat) 02:21.
TIME = re.compile(r"(\d{4}/\d{2}/\d{2}) \(\w{2,9}\) (\d{2}:\d{2})")


class Turn(msgspec.Struct, frozen=True):
    role: Literal["user", "assistant"]
    content: str
    has_answer: bool | None = None


Session = tuple[Turn, ...]


class Question(msgspec.Struct, frozen=True):
    """One object of the file, without its answer."""

    question_id: Scope
    question_type: Written
    question: Written
    question_date: str
    haystack_session_ids: tuple[Identifier, ...]
    haystack_dates: tuple[str, ...]
    haystack_sessions: tuple[Session, ...]
    answer_session_ids: tuple[str, ...]

    @property
    def stratum(self) -> str:
        return ABSTENTION if self.question_id.endswith(ABSTAIN) else self.question_type


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    taken: int
    without_evidence: int


def read(
    path: Path,
    writer: DatasetWriter,
    by: By = "turn",
    every: int = 1,
    progress: Progress | None = None,
) -> Imported:
    """Write each `every`th question, holding one in memory at a time."""
    counted: Counter[bool] = Counter()
    ids: set[str] = set()
    for number, question in enumerate(_questions(path, progress)):
        if question.question_id in ids:
            raise InvalidInput(f"{path}: question {question.question_id} appears twice.")
        ids.add(question.question_id)
        if number % every == 0:
            counted[_write(path, question, by, writer)] += 1
    if not counted[True]:
        raise InvalidInput(f"{path}: no question in it has evidence. {_expected()}")
    return Imported(taken=counted[True], without_evidence=counted[False])


def _questions(path: Path, progress: Progress | None) -> Iterator[Question]:
    decoder = msgspec.json.Decoder(Question)
    for number, element in enumerate(list_elements(path, progress), 1):
        try:
            question = decoder.decode(element)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidInput(f"{path}: question {number:,}: {error}. {_expected()}") from None
        sizes = [
            len(question.haystack_sessions),
            len(question.haystack_session_ids),
            len(question.haystack_dates),
        ]
        if len(set(sizes)) > 1:
            raise InvalidInput(
                f"{path}: question {question.question_id} has {sizes[0]} sessions, {sizes[1]} ids "
                f"and {sizes[2]} dates of sessions. {_expected()}"
            )
        yield question


def _write(path: Path, question: Question, by: By, writer: DatasetWriter) -> bool:
    """Write nothing and return False if the question has no evidence."""
    documents, grades = _by_session(path, question) if by == "session" else _by_turn(path, question)
    if not grades:
        return False
    writer.add(documents)
    query = Query(
        id=question.question_id,
        text=question.question,
        scope=question.question_id,
        stratum=question.stratum,
        asked_at=_time(path, question, question.question_date),
    )
    writer.ask(query, grades)
    return True


def _by_turn(path: Path, question: Question) -> tuple[list[Document], Mapping[str, int]]:
    documents, marked = [], []
    for session, created_at, turns in _sessions(path, question):
        for place, turn in enumerate(turns, 1):
            if turn.content.strip():
                documents.append(
                    _document(question, f"{session}:{place}", turn.content, created_at)
                )
                marked += [documents[-1].id] if turn.has_answer else []
    return documents, relevant(marked)


def _by_session(path: Path, question: Question) -> tuple[list[Document], Mapping[str, int]]:
    documents, evidence = [], []
    for (session, created_at, turns), listed in zip(
        _sessions(path, question), question.haystack_session_ids, strict=True
    ):
        text = "\n".join(f"{turn.role}: {turn.content}" for turn in turns if turn.content.strip())
        if text:
            documents.append(_document(question, session, text, created_at))
            evidence += [documents[-1].id] if listed in question.answer_session_ids else []
    return documents, relevant(evidence)


def _document(question: Question, name: str, text: str, created_at: str) -> Document:
    scope = question.question_id
    return Document(id=f"{scope}/{name}", text=text, scope=scope, created_at=created_at)


def _sessions(path: Path, question: Question) -> Iterator[tuple[str, str, Sequence[Turn]]]:
    seen: Counter[str] = Counter()
    for id, date, turns in zip(
        question.haystack_session_ids,
        question.haystack_dates,
        question.haystack_sessions,
        strict=True,
    ):
        seen[id] += 1
        yield (id if seen[id] == 1 else f"{id}#{seen[id]}"), _time(path, question, date), turns


def _time(path: Path, question: Question, written: str) -> str:
    """Assume UTC; the file gives no time zone."""
    match = TIME.fullmatch(written)
    try:
        moment = datetime.strptime(f"{match[1]} {match[2]}", "%Y/%m/%d %H:%M") if match else None
    except ValueError:
        moment = None
    if moment is None:
        raise InvalidInput(
            f"{path}: question {question.question_id}: {written!r} is not a time such as "
            "'2023/05/20 (Sat) 02:21'."
        )
    return moment.isoformat() + "Z"


def _expected() -> str:
    return (
        "Give longmemeval_s_cleaned.json, longmemeval_m_cleaned.json or longmemeval_oracle.json "
        f"from {SOURCE}."
    )
