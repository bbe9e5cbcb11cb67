"""Cranfield: aeronautical abstracts with graded judgements."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from trivet.errors import InvalidInput
from trivet.lab.dataset import Dataset, Document, Query
from trivet.lab.originals.source import Gathering
from trivet.lab.read_files import existing, refuse, text_lines

# The original counts from 1, a complete answer, to 4, of minimal interest; 5 is of no interest.
WORST = 5
RECORD = re.compile(r"\.I\s+(\d+)")
SECTION = re.compile(r"\.([TABW])")
JUDGEMENT = re.compile(r"(\d+)\s+\d+\s+(\d+)\s+([1-5])")


def read(data_folder: Path) -> Dataset:
    """Judgements number the queries by their order (1 to 225), not by the numbers printed beside them."""
    folder = data_folder / "cranfield"
    gathering = Gathering()
    printed = dict(_records(existing(folder, "cran.all.1400")))
    for number, sections in printed.items():
        if sections["W"]:  # two are empty, and what has no text cannot be found
            gathering.add(Document(id=number, title=sections["T"] or None, text=sections["W"]))
    path = existing(folder, "cranqrel")
    grades = _grades(path, printed)
    for order, (_, sections) in enumerate(_records(existing(folder, "cran.qry")), 1):
        judged = grades.get(str(order), {})
        found = {document: grade for document, grade in judged.items() if document in gathering.documents}
        if not any(found.values()):
            raise InvalidInput(f"{path}: no line gives query {order} a relevant abstract.")
        gathering.ask(Query(id=str(order), text=sections["W"]), found)
    return gathering.dataset("cranfield")


def _records(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each record's printed number and its title (T) and text (W); the text of an abstract repeats the title."""
    number, section = "", ""
    sections: defaultdict[str, list[str]] = defaultdict(list)
    for position, line in text_lines(path):
        stripped = line.strip()
        if start := RECORD.fullmatch(stripped):
            if number:
                yield number, _joined(sections)
            number, section, sections = start[1], "", defaultdict(list)
        elif not number:
            refuse(path, position, "a record must start with .I and a number.")
        elif marker := SECTION.fullmatch(stripped):
            # A letter after .W is a slip of the typist: all that follows still belongs to the text.
            section = section if section == "W" else marker[1]
        else:
            sections[section].append(stripped)
    if number:
        yield number, _joined(sections)


def _joined(sections: Mapping[str, list[str]]) -> dict[str, str]:
    return {letter: " ".join(sections.get(letter, ())) for letter in "TW"}


def _grades(path: Path, known: Container[str]) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for position, line in text_lines(path):
        judgement = JUDGEMENT.fullmatch(line.strip())
        if judgement is None:
            refuse(path, position, f"{line.strip()!r} is not a query, a 0, an abstract and a grade from 1 to {WORST}.")
        query, document, grade = judgement.groups()
        if document not in known:
            refuse(path, position, f"there is no abstract {document}.")
        grades.setdefault(query, {})[document] = WORST - int(grade)
    return grades
