"""The texts of the evaluation corpora, normalised, so that training data can be kept apart from them."""

from __future__ import annotations

import json
import lzma
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EvaluationTexts:
    """Normalised queries and gold passages (with and without their titles), each with the corpora it belongs to."""

    queries: dict[str, set[str]]
    gold: dict[str, set[str]]
    passages: dict[str, set[str]]


def normalised(text: str) -> str:
    """Letters and digits alone, so that case, punctuation and spacing hide nothing."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def read_evaluation(folder: Path) -> EvaluationTexts:
    texts = EvaluationTexts({}, {}, {})
    for path in sorted(folder.glob("*.json.xz")):
        data = json.loads(lzma.decompress(path.read_bytes()))
        name = path.name.partition(".")[0]
        gold = {int(place) for query in data["queries"] for place, grade in query["grades"].items() if grade > 0}
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
