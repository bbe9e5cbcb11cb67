"""Importers of Cranfield, SciFact, HotpotQA, MuSiQue and CoSQA."""

from __future__ import annotations

import ast
import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

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
from trivet.lab.datasets.read_files import find_file, raise_line_error, text, text_lines

# The original grades from 1 (complete answer) to 4 (minimal interest); 5 means no interest.
WORST = 5
RECORD = re.compile(r"\.I\s+(\d+)")
SECTION = re.compile(r"\.([TABW])")
JUDGEMENT = re.compile(r"(\d+)\s+\d+\s+(\d+)\s+([1-5])")


def read_cranfield(data_folder: Path) -> Dataset:
    """Return Cranfield; judgments number queries by order, not by the printed number."""
    folder = data_folder / "cranfield"
    builder = DatasetBuilder()
    printed = dict(_records(find_file(folder, "cran.all.1400")))
    for number, sections in printed.items():
        if sections["W"]:  # Two abstracts are empty; without text, nothing can find them.
            builder.add(Document(id=number, title=sections["T"] or None, text=sections["W"]))
    path = find_file(folder, "cranqrel")
    grades = _grades(path, printed)
    for order, (_, sections) in enumerate(_records(find_file(folder, "cran.qry")), 1):
        judged = grades.get(str(order), {})
        found = {
            document: grade for document, grade in judged.items() if document in builder.documents
        }
        if not any(found.values()):
            raise InvalidInput(f"{path}: no line gives query {order} a relevant abstract.")
        builder.ask(Query(id=str(order), text=sections["W"]), found)
    return builder.dataset("cranfield")


def _records(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield number and sections: title (T) and text (W), which repeats the title."""
    number, section = "", ""
    sections: defaultdict[str, list[str]] = defaultdict(list)
    for position, line in text_lines(path):
        stripped = line.strip()
        if start := RECORD.fullmatch(stripped):
            if number:
                yield number, _joined(sections)
            number, section, sections = start[1], "", defaultdict(list)
        elif not number:
            raise_line_error(path, position, "a record must start with .I and a number.")
        elif marker := SECTION.fullmatch(stripped):
            # A letter after .W is a typo in the original: the rest still belongs to the text.
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
            raise_line_error(
                path,
                position,
                f"{line.strip()!r} is not a query, a 0, an abstract and a grade from 1 to {WORST}.",
            )
        query, document, grade = judgement.groups()
        if document not in known:
            raise_line_error(path, position, f"there is no abstract {document}.")
        grades.setdefault(query, {})[document] = WORST - int(grade)
    return grades


STRATA: Mapping[str, str] = {"SUPPORT": "supported", "CONTRADICT": "contradicted", "": "undecided"}
# Abstracts are printed as Python strings without commas, which ast would join without a space.
SENTENCE = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
NUMBER = re.compile(r"\d+")


def read_scifact(data_folder: Path) -> Dataset:
    """Return the validation claims, BEIR's test queries."""
    folder = data_folder / "scifact"
    builder = DatasetBuilder()
    path = find_file(folder, "corpus_train.csv")
    for line, row in _rows(path, ("doc_id", "title", "abstract")):
        builder.add(
            Document(
                id=row["doc_id"], title=row["title"], text=_abstract(path, line, row["abstract"])
            )
        )
    path = find_file(folder, "claims_validation.csv")
    asked = set()
    for line, row in _rows(path, ("id", "claim", "evidence_label", "cited_doc_ids")):
        # One row per piece of evidence; claim and cited ids are the same in all of them.
        if row["id"] not in asked:
            asked.add(row["id"])
            _ask(path, line, builder, row)
    return builder.dataset("scifact")


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(text(path), newline=""))
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        raise_line_error(path, 1, f"there is no column {missing[0]!r}.")
    for row in reader:
        if any(row[column] is None for column in columns):
            raise_line_error(
                path, reader.line_num, f"the row is too short; it needs {', '.join(columns)}."
            )
        yield reader.line_num, row


def _abstract(path: Path, line: int, printed: str) -> str:
    try:
        sentences = [
            str(ast.literal_eval(sentence)).strip() for sentence in SENTENCE.findall(printed)
        ]
    except (SyntaxError, ValueError):
        raise_line_error(path, line, "the abstract is not a list of sentences in quotes.")
    if not any(sentences):
        raise_line_error(path, line, "the abstract holds no sentence in quotes.")
    return " ".join(sentences)


def _ask(path: Path, line: int, builder: DatasetBuilder, row: dict[str, str]) -> None:
    cited = NUMBER.findall(row["cited_doc_ids"])
    missing = [identifier for identifier in cited if identifier not in builder.documents]
    if not cited or missing:
        raise_line_error(
            path,
            line,
            f"claim {row['id']} cites "
            f"{'no abstract' if not cited else f'{missing[0]}, not in the corpus'}.",
        )
    if row["evidence_label"] not in STRATA:
        raise_line_error(
            path,
            line,
            f"evidence_label {row['evidence_label']!r} is not one of "
            f"{', '.join(filter(None, STRATA))}.",
        )
    query = Query(id=row["id"], text=row["claim"], stratum=STRATA[row["evidence_label"]])
    builder.ask(query, relevant(cited))


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
    """Return HotpotQA; HippoRAG repeats some questions, whose copies get numbered ids."""
    builder = DatasetBuilder()
    identifiers: dict[str, str] = {}
    corpus = read_json(
        find_file(data_folder / FOLDER, "hotpotqa_corpus.json"), dict[str, list[str]]
    )
    for number, (title, sentences) in enumerate(corpus.items()):
        identifiers[title] = f"p{number}"
        builder.add(Document(id=f"p{number}", title=title, text="".join(sentences).strip()))
    path = find_file(data_folder / FOLDER, "hotpotqa.json")
    drawn: Counter[str] = Counter()
    for question in read_json(path, list[HotpotQuestion]):
        drawn[question.id] += 1
        suffix = f"-{drawn[question.id]}" if drawn[question.id] > 1 else ""
        query = Query(id=question.id + suffix, text=question.question, stratum=question.type)
        titles = [(title, title) for title, _ in question.supporting_facts]
        if not titles:
            raise InvalidInput(f"{path}: question {question.id} has no supporting fact.")
        builder.ask(query, relevant(_found(path, question.id, titles, identifiers)))
    return builder.dataset("hotpotqa")


def read_musique(data_folder: Path) -> Dataset:
    """Return MuSiQue; many passages share a title, so title and text identify one."""
    builder = DatasetBuilder()
    identifiers: dict[tuple[str, str], str] = {}
    for number, passage in enumerate(
        read_json(find_file(data_folder / FOLDER, "musique_corpus.json"), list[Passage])
    ):
        identifiers[passage.title, passage.text] = f"p{number}"
        builder.add(Document(id=f"p{number}", title=passage.title, text=passage.text))
    path = find_file(data_folder / FOLDER, "musique.json")
    for question in read_json(path, list[MusiqueQuestion]):
        supporting = [
            (one.title, (one.title, one.paragraph_text))
            for one in question.paragraphs
            if one.is_supporting
        ]
        if not supporting:
            raise InvalidInput(f"{path}: question {question.id} has no supporting paragraph.")
        grades = relevant(_found(path, question.id, supporting, identifiers))
        builder.ask(
            Query(id=question.id, text=question.question, stratum=f"{len(grades)}-hop"), grades
        )
    return builder.dataset("musique")


def _found(
    path: Path, question: str, passages: Sequence[tuple[str, Key]], identifiers: Mapping[Key, str]
) -> list[str]:
    missing = [title for title, key in passages if key not in identifiers]
    if missing:
        raise InvalidInput(
            f"{path}: question {question}: its passage {missing[0]!r} is not in the corpus."
        )
    return [identifiers[key] for _, key in passages]


class CosqaQuestion(msgspec.Struct, frozen=True):
    idx: str
    doc: str
    retrieval_idx: int


def read_cosqa(data_folder: Path) -> Dataset:
    folder = data_folder / "cosqa"
    builder = DatasetBuilder()
    for code, number in read_json(find_file(folder, "code_idx_map.txt"), dict[str, int]).items():
        builder.add(Document(id=f"f{number}", text=code))
    path = find_file(folder, "cosqa-retrieval-dev-500.json")
    for question in read_json(path, list[CosqaQuestion]):
        function = f"f{question.retrieval_idx}"
        if function not in builder.documents:
            raise InvalidInput(
                f"{path}: question {question.idx}: function {question.retrieval_idx} is not in "
                "the code map."
            )
        builder.ask(Query(id=question.idx, text=question.doc), relevant([function]))
    return builder.dataset("cosqa")
