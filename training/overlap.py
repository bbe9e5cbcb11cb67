"""The evaluation texts, normalized, to keep training data apart from them."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class EvaluationTexts:
    """Normalized queries and gold passages (with and without titles), with their corpora."""

    queries: dict[str, set[str]]
    gold: dict[str, set[str]]
    passages: dict[str, set[str]]


def normalised(text: str) -> str:
    """Keep letters and digits only, so case, punctuation and spacing do not hide a match."""
    return re.sub(r"[\W_]+", "", text.lower())


def _corpora(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        yield from json.loads(lzma.decompress(path.read_bytes()))
        return
    for one in sorted(path.glob("*.json.xz")):
        yield json.loads(lzma.decompress(one.read_bytes()))


def read_evaluation(folder: Path) -> EvaluationTexts:
    texts = EvaluationTexts({}, {}, {})
    for data in _corpora(folder):
        name = data["name"]
        gold = {
            int(place)
            for query in data["queries"]
            for place, grade in query["grades"].items()
            if grade > 0
        }
        for query in data["queries"]:
            texts.queries.setdefault(normalised(query["text"]), set()).add(name)
        for place, passage in zip(data["document_of"], data["passages"], strict=True):
            _, newline, body = passage.partition("\n")
            for form in {normalised(passage), normalised(body) if newline else normalised(passage)}:
                if form:
                    texts.passages.setdefault(form, set()).add(name)
                    if place in gold:
                        texts.gold.setdefault(form, set()).add(name)
    return texts
