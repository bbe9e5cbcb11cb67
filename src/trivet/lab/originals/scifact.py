"""SciFact: claims against abstracts. Gold are the cited abstracts, a stratum is what the evidence says of the claim."""

from __future__ import annotations

import ast
import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from trivet.lab.dataset import Dataset, Document, Query
from trivet.lab.originals.source import Gathering, relevant
from trivet.lab.read_files import existing, refuse, text

STRATA: Mapping[str, str] = {"SUPPORT": "supported", "CONTRADICT": "contradicted", "": "undecided"}
# Abstracts are printed as a list of Python strings without commas, which ast would glue together without a space.
SENTENCE = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
NUMBER = re.compile(r"\d+")


def read(data_folder: Path) -> Dataset:
    """The validation claims, which are BEIR's test queries, over all abstracts."""
    folder = data_folder / "scifact"
    gathering = Gathering()
    path = existing(folder, "corpus_train.csv")
    for line, row in _rows(path, ("doc_id", "title", "abstract")):
        gathering.add(Document(id=row["doc_id"], title=row["title"], text=_abstract(path, line, row["abstract"])))
    path = existing(folder, "claims_validation.csv")
    asked = set()
    for line, row in _rows(path, ("id", "claim", "evidence_label", "cited_doc_ids")):
        if row["id"] not in asked:  # one row for each piece of evidence; claim and cited ids are the same in all
            asked.add(row["id"])
            _ask(path, line, gathering, row)
    return gathering.dataset("scifact")


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with the number of their last line (a field may span several)."""
    reader = csv.DictReader(io.StringIO(text(path), newline=""))
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        refuse(path, 1, f"there is no column {missing[0]!r}.")
    for row in reader:
        if any(row[column] is None for column in columns):
            refuse(path, reader.line_num, f"the row is too short; it needs {', '.join(columns)}.")
        yield reader.line_num, row


def _abstract(path: Path, line: int, printed: str) -> str:
    try:
        sentences = [str(ast.literal_eval(sentence)).strip() for sentence in SENTENCE.findall(printed)]
    except (SyntaxError, ValueError):
        refuse(path, line, "the abstract is not a list of sentences in quotes.")
    if not any(sentences):
        refuse(path, line, "the abstract holds no sentence in quotes.")
    return " ".join(sentences)


def _ask(path: Path, line: int, gathering: Gathering, row: dict[str, str]) -> None:
    cited = NUMBER.findall(row["cited_doc_ids"])
    missing = [identifier for identifier in cited if identifier not in gathering.documents]
    if not cited or missing:
        refuse(
            path, line, f"claim {row['id']} cites {'no abstract' if not cited else f'{missing[0]}, not in the corpus'}."
        )
    if row["evidence_label"] not in STRATA:
        refuse(path, line, f"evidence_label {row['evidence_label']!r} is none of {', '.join(filter(None, STRATA))}.")
    query = Query(id=row["id"], text=row["claim"], stratum=STRATA[row["evidence_label"]])
    gathering.ask(query, relevant(cited))
