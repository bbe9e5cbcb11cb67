"""Judge a reranker on dump_eval.py's files: legs fused like the product, reranked and blended."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data import LONGEST_PASSAGE, LONGEST_QUERY, tokenised
from encoder import Reranker, Texts, scored

DEPTH = 50
# The product's default fusion: convex(norm=spread, norm.graph=raw, lexical=1, dense=8, graph=8).
WEIGHTS: Mapping[str, float] = {"lexical": 1.0, "dense": 8.0, "graph": 8.0}
FLOORS: Mapping[str, float] = {"lexical": 0.0, "dense": -1.0, "graph": 0.0}
RAW = frozenset({"graph"})
RESAMPLES = 1_000
CHECK = "house"  # Our own set takes no part in a choice or mean.

Ranking = list[tuple[int, float]]
Legs = Mapping[str, Ranking]


@dataclass(slots=True)
class Corpus:
    """One corpus, tokenized: passages, texts that must not be embedded, queries.

    The first `answerable` queries have grades; nothing in the corpus answers the rest.
    """

    name: str
    texts: Texts
    passages: int
    unembedded: int
    document_of: np.ndarray
    scopes: list[str | None]
    queries: list[dict[str, Any]]
    answerable: int
    legs: dict[str, list[Ranking]]

    @property
    def query_places(self) -> np.ndarray:
        start = self.passages + self.unembedded
        return np.arange(start, start + len(self.queries))

    def passages_of(self) -> list[list[int]]:
        places: list[list[int]] = [[] for _ in self.scopes]
        for place, document in enumerate(self.document_of):
            places[int(document)].append(place)
        return places


@dataclass(slots=True)
class Listed:
    documents: list[np.ndarray]
    scores: list[np.ndarray]


def read_corpus(
    path: Path, tokenizer: Path | None, device: str = "cpu", most: int | None = None
) -> Corpus:
    """Read a corpus. Without a tokenizer texts are skipped, enough to judge stored rankings."""
    data = json.loads(lzma.decompress(path.read_bytes()))
    queries = data["queries"][:most] + data["unanswerable"][:most]
    own = data["passages"] + [text for _, text in data["unembedded"]]
    table = own + [query["text"] for query in queries]
    limits = [LONGEST_PASSAGE] * len(own) + [LONGEST_QUERY] * len(queries)
    empty = np.zeros(0, dtype=np.int64)
    return Corpus(
        name=data["name"],
        texts=tokenised(table, limits, tokenizer, device)
        if tokenizer
        else Texts(empty, empty, empty, device),
        passages=len(data["passages"]),
        unembedded=len(data["unembedded"]),
        document_of=np.array(
            data["document_of"] + [document for document, _ in data["unembedded"]]
        ),
        scopes=data["scopes"],
        queries=queries,
        answerable=len(data["queries"][:most]),
        legs={leg: data[leg][:most] + data["unanswerable_rankings"][leg][:most] for leg in WEIGHTS},
    )


def normalised(leg: str, scores: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a leg's scores as fusion sees them, and the value of a document it did not return."""
    if leg in RAW:
        return scores, FLOORS[leg]
    if scores[0] == scores[-1]:
        return np.zeros(len(scores)), -1.0
    mean = scores.mean()
    normal = (scores - mean) / (mean - FLOORS[leg])
    return normal, float(normal[-1])


def fused(legs: Legs, weights: Mapping[str, float] = WEIGHTS) -> Ranking:
    """Return every document of any leg, best first; the best rank in a leg breaks ties."""
    active = {leg: ranking[:DEPTH] for leg, ranking in legs.items() if ranking and weights[leg]}
    total = sum(weights[leg] for leg in active)
    ranks: dict[int, int] = {}
    for ranking in active.values():
        for rank, (document, _) in enumerate(ranking):
            ranks[document] = min(rank, ranks.get(document, rank))
    scores = dict.fromkeys(ranks, 0.0)
    for leg, ranking in active.items():
        normal, missing = normalised(leg, np.array([score for _, score in ranking]))
        own = dict(zip((document for document, _ in ranking), normal.tolist(), strict=True))
        for document in scores:
            scores[document] += weights[leg] / total * own.get(document, missing)
    return sorted(scores.items(), key=lambda pair: (-pair[1], ranks[pair[0]], pair[0]))


def kept_lists(path: Path, corpus: Corpus) -> Listed:
    with np.load(path) as arrays:
        documents, scores = arrays[f"{corpus.name}.documents"], arrays[f"{corpus.name}.fused"]
    return Listed(
        [row[row >= 0].astype(np.int64) for row in documents],
        [row[~np.isnan(row)].astype(float) for row in scores],
    )


def padded(rows: Sequence[Sequence[float] | np.ndarray], filler: float, kind: type) -> np.ndarray:
    table: np.ndarray = np.full((len(rows), DEPTH), filler, dtype=kind)
    for at, row in enumerate(rows):
        table[at, : min(len(row), DEPTH)] = row[:DEPTH]
    return table


def kept_scores(path: Path, corpus: Corpus) -> list[np.ndarray]:
    with np.load(path) as arrays:
        return [row[~np.isnan(row)].astype(float) for row in arrays[corpus.name]]


def listed(
    corpus: Corpus, dense: Sequence[Ranking], weights: Mapping[str, float] = WEIGHTS
) -> Listed:
    lists = Listed([], [])
    for at in range(len(corpus.queries)):
        legs = {
            "lexical": corpus.legs["lexical"][at],
            "dense": dense[at],
            "graph": corpus.legs["graph"][at],
        }
        pairs = fused(legs, weights)[:100]
        lists.documents.append(np.array([document for document, _ in pairs], dtype=np.int64))
        lists.scores.append(np.array([score for _, score in pairs]))
    return lists


@torch.no_grad()
def rerank_scores(
    corpus: Corpus, lists: Listed, reranker: Reranker, head: int, queries: int
) -> list[np.ndarray]:
    """Score the first documents of the first lists; a document's best passage counts."""
    places = corpus.passages_of()
    asked: list[Any] = []
    passages: list[Any] = []
    starts: list[int] = []
    sizes: list[int] = []
    for at in range(queries):
        documents = lists.documents[at][:head].tolist()
        sizes.append(len(documents))
        for document in documents:
            starts.append(len(passages))
            passages.extend(places[document])
            asked.extend([corpus.query_places[at]] * len(places[document]))
    scores = (
        scored(reranker, corpus.texts, np.array(asked), np.array(passages)).float().cpu().numpy()
    )
    return np.split(np.maximum.reduceat(scores, starts), np.cumsum(sizes)[:-1])


def reranked(
    lists: Listed, scores: Sequence[np.ndarray], count: int, weight: float
) -> list[np.ndarray]:
    """Reorder the first `count` documents; `weight` is the reranker's share."""
    answers = []
    for at, own in enumerate(scores):
        documents = lists.documents[at]
        head = min(count, len(own))
        mixed = weight * standard(own[:head]) + (1 - weight) * standard(lists.scores[at][:head])
        order = np.argsort(-mixed, kind="stable")
        answers.append(np.concatenate([documents[:head][order], documents[head:]]))
    return answers


def standard(values: np.ndarray) -> np.ndarray:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def measured(corpus: Corpus, answers: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return nDCG@10 with linear gains and recall@5 for each answerable query."""
    discounts = 1 / np.log2(np.arange(2, 12))
    gains_found, recalls = [], []
    for query, answer in zip(corpus.queries[: corpus.answerable], answers, strict=False):
        grades = {int(place): grade for place, grade in query["grades"].items()}
        gains = np.array(
            [max(grades.get(int(document), 0), 0) for document in answer[:10]], dtype=float
        )
        ideal = np.sort([grade for grade in grades.values() if grade > 0])[::-1][:10]
        gains_found.append(
            (gains * discounts[: len(gains)]).sum() / (ideal * discounts[: len(ideal)]).sum()
        )
        relevant = {place for place, grade in grades.items() if grade > 0}
        recalls.append(len(relevant & {int(document) for document in answer[:5]}) / len(relevant))
    return {"ndcg": np.array(gains_found), "recall": np.array(recalls)}


def order_of(rankings: Sequence[Ranking]) -> list[np.ndarray]:
    return [np.array([document for document, _ in ranking], dtype=np.int64) for ranking in rankings]


def interval(base: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """Return the mean difference and its 95 % paired bootstrap interval."""
    difference = other - base
    chance = np.random.default_rng(0)
    means = difference[chance.integers(0, len(difference), (RESAMPLES, len(difference)))].mean(1)
    return (
        float(difference.mean()),
        float(np.quantile(means, 0.025)),
        float(np.quantile(means, 0.975)),
    )


def compared(base: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> dict[str, Any]:
    difference, low, high = interval(base["ndcg"], other["ndcg"])
    return {
        "ndcg": round(float(other["ndcg"].mean()), 4),
        "recall": round(float(other["recall"].mean()), 4),
        "difference": round(difference, 4),
        "interval": [round(low, 4), round(high, 4)],
    }


def stock_reference(corpus: Corpus) -> dict[str, np.ndarray]:
    """Rank like the product: all three legs with the stock int8 model's vectors."""
    if corpus.name not in _references:
        _references[corpus.name] = measured(corpus, listed(corpus, corpus.legs["dense"]).documents)
    return _references[corpus.name]


_references: dict[str, dict[str, np.ndarray]] = {}
