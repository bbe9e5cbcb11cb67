r"""Features for choosing blends: one row per candidate of each query, one file per corpus.

python features.py --eval FOLDER --lists lists-tuned.npz \
    --scores best=SCORES.npz fast=SCORES.npz --output FOLDER

Candidates are the first of the fixed fusion over the legs' union. `features-NAME.npz` holds

candidates        float32, a row per candidate; see `candidate_columns`; NaN: not returned
queries           float32, a row per query; see `query_columns`
first             int64, where a query's candidates start; one more at the end
documents         int32, the candidate's position in the corpus
sources           the query's origin: "answerable", or why nothing answers it

Needs Trivet's analyzer, so that words match the lexical leg's.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from evaluate import DEPTH, Ranking, fused, normalised
from trivet.analyse import Question, analyse, analyse_query, contains_phrase, fold

LEGS = ("lexical", "dense", "graph")
CANDIDATE_COLUMNS = (
    "lexical", "dense", "graph",  # Raw scores.
    "lexical_spread", "dense_spread", "graph_raw",  # As fusion sees them, missing ones filled in.
    "lexical_rank", "dense_rank", "graph_rank",  # From 1; NaN: not returned.
    "lexical_gap", "dense_gap", "graph_gap",  # Normalized score minus the leg's next one.
    "fused", "fused_rank",
    "coverage", "rarest", "pairs", "exact", "length",
    "best", "fast",  # Rerankers' scores.
    "grade",
)  # fmt: skip
QUERY_COLUMNS = (
    "words", "question", "person", "time", "reason", "identifiers", "digits", "quoted", "known", "legs_agree",
    "lexical_top", "dense_top", "graph_top", "lexical_count", "graph_count",
)  # fmt: skip
QUESTION = re.compile(
    r"^(who|whom|whose|what|when|where|why|which|how|did|does|do|is|are|was|were|can|has|have)\b",
    re.I,
)
PERSON, TIME = (
    re.compile(r"\b(who|whom|whose)\b", re.I),
    re.compile(r"\b(when|date|year|day|time|how long)\b", re.I),
)
REASON = re.compile(r"\b(why|reason|because)\b", re.I)
SHORTEST_EXACT = 8
AGREED_HEAD = 10


class Words:
    """The corpus as its lexical leg reads it: terms, adjacent terms, and rarity of terms."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        texts: list[list[str]] = [[] for _ in data["scopes"]]
        for place, text in zip(data["document_of"], data["passages"], strict=True):
            texts[place].append(text)
        for place, text in data["unembedded"]:
            texts[place].append(text)
        self._texts = ["\n".join(own) for own in texts]
        self._terms = [analyse(text) for text in self._texts]
        self._sets = [frozenset(terms) for terms in self._terms]
        self._held = Counter(term for own in self._sets for term in own)
        self._pairs: dict[int, frozenset[tuple[str, str]]] = {}
        self._folded: dict[int, str] = {}

    def rarity(self, terms: Sequence[str]) -> float:
        return math.log(1 + len(self._sets) / (0.5 + self._held[terms[0]]))

    def is_known(self, terms: Sequence[str]) -> bool:
        return self._held[terms[0]] > 0

    def of(self, document: int) -> frozenset[str]:
        return self._sets[document]

    def length(self, document: int) -> float:
        return math.log1p(len(self._terms[document]))

    def pairs(self, document: int) -> frozenset[tuple[str, str]]:
        if document not in self._pairs:
            terms = self._terms[document]
            self._pairs[document] = frozenset(pairwise(terms))
        return self._pairs[document]

    def folded(self, document: int) -> str:
        if document not in self._folded:
            self._folded[document] = fold(self._texts[document])
        return self._folded[document]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("eval", "lists", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--scores", nargs="+", required=True, help="best=FILE and fast=FILE")
    parser.add_argument("--only", nargs="*", help="these corpora alone")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    scores = {
        name: Path(path) for name, _, path in (one.partition("=") for one in arguments.scores)
    }
    for path in sorted(arguments.eval.glob("*.json.xz")):
        data = json.loads(lzma.decompress(path.read_bytes()))
        if arguments.only and data["name"] not in arguments.only:
            continue
        arrays: dict[str, Any] = featured(data, arguments.lists, scores)
        target = arguments.output / f"features-{data['name']}.npz"
        np.savez_compressed(target, **arrays)
        print(
            data["name"],
            arrays["candidates"].shape,
            arrays["queries"].shape,
            target.stat().st_size,
            flush=True,
        )


def featured(
    data: Mapping[str, Any], lists: Path, scores: Mapping[str, Path]
) -> dict[str, np.ndarray]:
    words = Words(data)
    queries = data["queries"] + data["unanswerable"]
    legs = {leg: data[leg] + data["unanswerable_rankings"][leg] for leg in LEGS}
    with np.load(lists) as arrays:
        legs["dense"] = _rankings(
            arrays[f"{data['name']}.dense_documents"], arrays[f"{data['name']}.dense_scores"]
        )
        heads = arrays[f"{data['name']}.documents"]
    reranked = {name: np.load(path)[data["name"]] for name, path in scores.items()}
    rows: list[np.ndarray] = []
    about, first, documents = [], [0], []
    for at, query in enumerate(queries):
        own = {leg: legs[leg][at] for leg in LEGS}
        scored = {
            name: dict(zip(heads[at].tolist(), table[at].tolist(), strict=True))
            for name, table in reranked.items()
        }
        question = analyse_query(query["text"])
        names, table = candidates(question, own, words, scored, query.get("grades", {}))
        rows.append(table)
        about.append(described(question, own, words))
        documents.extend(names)
        first.append(first[-1] + len(table))
    return {
        "candidates": np.concatenate(rows).astype(np.float32),
        "queries": np.array(about, dtype=np.float32),
        "first": np.array(first),
        "documents": np.array(documents, dtype=np.int32),
        "sources": np.array([query.get("source", "answerable") for query in queries]),
        "candidate_columns": np.array(CANDIDATE_COLUMNS),
        "query_columns": np.array(QUERY_COLUMNS),
    }


def _rankings(documents: np.ndarray, scores: np.ndarray) -> list[Ranking]:
    return [
        [
            (int(document), float(score))
            for document, score in zip(*row, strict=True)
            if document >= 0
        ]
        for row in zip(documents, scores, strict=True)
    ]


def candidates(
    question: Question,
    legs: Mapping[str, Ranking],
    words: Words,
    reranked: Mapping[str, Mapping[int, float]],
    grades: Mapping[str, int],
) -> tuple[list[int], np.ndarray]:
    order = fused(legs)[:DEPTH]
    table = np.full((len(order), len(CANDIDATE_COLUMNS)), np.nan)
    column = {name: at for at, name in enumerate(CANDIDATE_COLUMNS)}
    views = {leg: _view(leg, ranking) for leg, ranking in legs.items()}
    spread = {"lexical": "lexical_spread", "dense": "dense_spread", "graph": "graph_raw"}
    total = sum(words.rarity(word.terms) for word in question.words)
    asked = [word.terms[0] for word in question.words]
    beside = list(pairwise(asked))
    for place, (document, score) in enumerate(order):
        row = table[place]
        for leg, (known, missing) in views.items():
            value = known.get(document)
            row[column[spread[leg]]] = missing if value is None else value[1]
            if value is not None:
                row[[column[leg], column[f"{leg}_rank"], column[f"{leg}_gap"]]] = (
                    value[0],
                    value[2],
                    value[3],
                )
        held = words.of(document)
        covered = [words.rarity(word.terms) for word in question.words if word.is_held(held)]
        row[column["fused"]], row[column["fused_rank"]] = score, place + 1
        row[column["coverage"]] = sum(covered) / total if total else 0.0
        row[column["rarest"]] = max(covered, default=0.0) / math.log(1 + 2 * len(words._sets))
        row[column["pairs"]] = (
            sum(pair in words.pairs(document) for pair in beside) / len(beside) if beside else 0.0
        )
        row[column["exact"]] = _exactness(question, words, document)
        row[column["length"]] = words.length(document)
        for name, scores in reranked.items():
            row[column[name]] = scores.get(document, np.nan)
        row[column["grade"]] = grades.get(str(document), 0)
    return [document for document, _ in order], table


def _view(leg: str, ranking: Ranking) -> tuple[dict[int, tuple[float, float, int, float]], float]:
    if not ranking:
        return {}, 0.0
    raw = np.array([score for _, score in ranking])
    normal, missing = normalised(leg, raw)
    gaps = normal - np.append(normal[1:], missing)
    return {
        document: (float(raw[at]), float(normal[at]), at + 1, float(gaps[at]))
        for at, (document, _) in enumerate(ranking)
    }, missing


def _exactness(question: Question, words: Words, document: int) -> float:
    wholes = [
        *question.phrases,
        *([question.folded] if len(question.folded) >= SHORTEST_EXACT else []),
    ]
    if not wholes and not question.identifiers:
        return 0.0
    text = words.folded(document)
    if any(contains_phrase(text, whole) for whole in wholes):
        return 1.0
    found = [contains_phrase(text, one) for one in question.identifiers]
    return sum(found) / len(found) if found else 0.0


def described(question: Question, legs: Mapping[str, Ranking], words: Words) -> list[float]:
    total = sum(words.rarity(word.terms) for word in question.words)
    known = sum(words.rarity(word.terms) for word in question.words if words.is_known(word.terms))
    heads = [{document for document, _ in legs[leg][:AGREED_HEAD]} for leg in ("lexical", "dense")]
    return [
        len(question.words),
        bool(QUESTION.match(question.text) or question.text.rstrip().endswith("?")),
        bool(PERSON.search(question.text)),
        bool(TIME.search(question.text)),
        bool(REASON.search(question.text)),
        len(question.identifiers),
        any(character.isdigit() for character in question.text),
        len(question.phrases),
        known / total if total else 0.0,
        len(heads[0] & heads[1]) / AGREED_HEAD,
        *(legs[leg][0][1] if legs[leg] else 0.0 for leg in LEGS),
        len(legs["lexical"]),
        len(legs["graph"]),
    ]


if __name__ == "__main__":
    main()
