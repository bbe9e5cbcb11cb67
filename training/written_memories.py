"""Training pairs from handwritten memories, long and short, with questions and near misses.

Reads lines of `long-*.jsonl` and `short-*.jsonl`: {"text", "plain", "paraphrase", "keyword",
"near"}; also the stores of `training/lives` and the memories of `training/pairs`. Long texts are
cut like the product's. Nobody labeled which passage answers: the trainer chooses the nearest
(`choose_answers`).
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder

FORMS = ("plain", "paraphrase", "keyword")
# One text in this many is held out for judging.
HELD_OUT_TEXTS = 8
HELPS = 2
OTHERS = 12
Row = tuple[str, list[int], list[int]]


@dataclass(frozen=True, slots=True)
class Written:
    text: str
    asked: Mapping[str, Sequence[str]]
    near: Sequence[str]
    long: bool


def read_written(folder: Path) -> list[Written]:
    return [
        Written(
            line["text"],
            {form: line.get(form, []) for form in FORMS},
            line.get("near", []),
            path.name.startswith("long-"),
        )
        for path in sorted([*folder.glob("long-*.jsonl"), *folder.glob("short-*.jsonl")])
        for line in lines(path)
        if line.get("text")
    ]


def held_out(text: str) -> bool:
    return zlib.crc32(text.encode()) % HELD_OUT_TEXTS == 0


def lines(path: Path) -> Iterator[Any]:
    return (
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    )


def written_rows(folder: Path) -> tuple[list[str], list[Row]]:
    """Return questions about long and short memories, each against texts of all lengths."""
    from trivet.models.embed.onnx import bundled

    embedder = bundled()
    texts: list[str] = []
    rows: list[Row] = []
    for one in read_written(folder):
        if held_out(one.text):
            continue
        start = len(texts)
        texts += passages(one.text, embedder)
        places = list(range(start, len(texts)))
        rows += [
            (question, places, []) for questions in one.asked.values() for question in questions
        ]
    return texts, rows


def pair_rows(folder: Path) -> tuple[list[str], list[Row]]:
    """Return questions that a short memory answers, mostly in other words."""
    texts: list[str] = []
    rows: list[Row] = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in lines(path):
            rows += [(question, [len(texts)], []) for question in line["answered"]]
            texts.append(line["memory"])
    return texts, rows


def life_rows(folder: Path) -> tuple[list[str], list[Row]]:
    """Return questions over small stores; judged non-answers come first among the others."""
    texts: list[str] = []
    rows: list[Row] = []
    for store in sorted(path for path in folder.iterdir() if (path / "queries.jsonl").exists()):
        places = {}
        for memory in lines(store / "corpus.jsonl"):
            places[memory["id"]] = len(texts)
            texts.append(memory["text"])
        grades: dict[str, dict[str, int]] = {}
        for row in (store / "qrels.tsv").read_text(encoding="utf-8").splitlines():
            query, document, grade = row.split("\t")
            grades.setdefault(query, {})[document] = int(grade)
        for query in lines(store / "queries.jsonl"):
            judged = grades.get(query["id"], {})
            answers = [places[one] for one, grade in judged.items() if grade >= HELPS]
            wanting = [places[one] for one, grade in judged.items() if grade == 0]
            others = [place for one, place in places.items() if one not in judged]
            if answers:
                rows.append(
                    (query["text"], answers, (wanting + _spread(others, len(rows)))[:OTHERS])
                )
    return texts, rows


def passages(text: str, embedder: Embedder) -> list[str]:
    from trivet.memory.passages import cut

    return [
        text[one.start : one.stop].strip()
        for one in cut(text, embedder.count_tokens, embedder.window)
    ]


def _spread(places: Sequence[int], seed: int) -> list[int]:
    return random.Random(seed).sample(places, min(OTHERS, len(places)))
