"""Measure what leg scores tell, and what agreement of reranker and fusion tells.

TRIVET_DATA=/path/to/originals python benchmarks/studies/leg_scores.py --kept KEPT --queries 250

The default recipe answers each query; both rerankers then read its first candidates. Results per
corpus stay in KEPT, so a run can continue. `--corpora scifact:400` stores only that many documents,
answers first: such figures are higher than those of the whole corpus, but comparable with each
other.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from embedder import add_embedder, identity

from trivet.analyse import analyse_query
from trivet.lab.datasets.catalog import import_original
from trivet.lab.datasets.dataset import RELEVANT, Dataset, Document, Query
from trivet.lab.datasets.plain_layout import house
from trivet.lab.measure.bench import Bench, open_bench
from trivet.lab.measure.comparison import bootstrap_means
from trivet.lab.measure.run import environment
from trivet.memory.answer.rerank import score_by_reranker
from trivet.models.rerank.registry import PRESETS
from trivet.search.fuse import fuse
from trivet.search.recipe import DEFAULT
from trivet.types import Candidate, Filter

CORPORA = ("locomo", "lihua", "scifact", "cranfield", "cosqa", "hotpotqa", "musique", "house")
LEGS = ("lexical", "dense", "graph")
RERANKERS = tuple(name for name, preset in PRESETS.items() if not preset.when_unsure)
READ = 20
FIRST = 10
RESAMPLES = 2_000
NO_HURRY_SECONDS = 600.0
# Words of a memory: a fact, a turn or short note, a passage, a long note or session.
LENGTHS: Mapping[str, tuple[int, float]] = {
    "up to 30": (0, 30),
    "31 to 100": (31, 100),
    "101 to 300": (101, 300),
    "over 300": (301, float("inf")),
}


class Seen(msgspec.Struct, frozen=True):
    score: float
    right: bool
    words: int


class Asked(msgspec.Struct, frozen=True):
    """One query: each leg's list, each arm's first hit and whether it is right, all right ones."""

    query: str
    lists: dict[str, list[Seen]]
    floors: dict[str, float]
    firsts: dict[str, str]
    right: dict[str, bool]
    confidence: float
    answers: int
    words_of_answers: list[int]


Corpora = Mapping[str, Sequence[Asked]]
Figures = dict[str, Any]


def main() -> None:
    options = _options()
    options.kept.mkdir(parents=True, exist_ok=True)
    corpora: dict[str, list[Asked]] = {}
    fingerprints: dict[str, str] = {}
    for corpus in options.corpora:
        name, _, documents = corpus.partition(":")
        dataset = house() if name == "house" else import_original(name)
        fingerprints[name] = dataset.fingerprint
        corpora[name] = _kept(dataset, int(documents) if documents else None, options)
    about = environment() | {
        "command": f"python benchmarks/studies/leg_scores.py --queries {options.queries} --corpora "
        + " ".join(options.corpora),
        "embedder": identity(options.embedder),
        "recipe": str(DEFAULT),
        "datasets": fingerprints,
        "queries": {name: len(asked) for name, asked in corpora.items()},
    }
    results = {"manifest": about, **figures(corpora)}
    options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def cut(dataset: Dataset, queries: int | None, documents: int | None) -> Dataset:
    """Draw answerable queries and documents by hash, answers first."""
    unanswerable = set(dataset.unanswerable)
    answerable = [query for query in dataset.queries if query.id not in unanswerable]
    asked = sorted(answerable, key=lambda query: zlib.crc32(query.id.encode()))[:queries]
    ids = {query.id for query in asked}
    judged = [row for row in dataset.judgements if row.query in ids]
    wanted = {row.document for row in judged if row.grade >= RELEVANT}
    order = sorted(
        dataset.documents, key=lambda one: (one.id not in wanted, zlib.crc32(one.id.encode()))
    )
    kept = {one.id for one in order[: max(documents or len(order), len(wanted))]}
    return Dataset(
        name=dataset.name if len(kept) == len(order) else f"{dataset.name}-cut",
        documents=tuple(_within(one, kept) for one in dataset.documents if one.id in kept),
        queries=tuple(asked),
        judgements=tuple(row for row in judged if row.document in kept),
    )


def _within(document: Document, kept: set[str]) -> Document:
    return msgspec.structs.replace(
        document, links=tuple(link for link in document.links if link.to in kept)
    )


def _kept(whole: Dataset, documents: int | None, options: argparse.Namespace) -> list[Asked]:
    dataset = cut(whole, options.queries, documents)
    # The lab already has the store of a whole corpus.
    stored = dataset if len(dataset.documents) < len(whole.documents) else whole
    model = identity(options.embedder).replace("/", "-")
    file = options.kept / f"{dataset.name}-{dataset.fingerprint[:12]}-{model}.json"
    if file.exists():
        return msgspec.json.decode(file.read_bytes(), type=list[Asked])
    print(
        f"{time.strftime('%H:%M')} {dataset.name}: {len(dataset.documents)} documents",
        file=sys.stderr,
        flush=True,
    )
    with open_bench(stored, options.cache, options.embedder) as opened:
        bench = Bench(dataset, opened.trivet)
        words = {one.id: len(one.text.split()) for one in dataset.documents}
        asked = [ask(bench, query, words) for query in dataset.queries]
    file.write_bytes(msgspec.json.encode(asked))
    return asked


def ask(bench: Bench, query: Query, words: Mapping[str, int]) -> Asked:
    engine, question = bench.trivet.engine, analyse_query(query.text)
    retrieved = bench.legs.retrieve(engine, question, Filter(scope=query.scope), DEFAULT)
    fused = fuse(DEFAULT.fusion, retrieved.rankings)
    memories = list(engine.store.memories.get_many([hit.id for hit in fused[:READ]]).values())
    readings = {
        name: score_by_reranker(
            engine,
            name,
            question,
            memories,
            retrieved.rankings,
            time.monotonic() + NO_HURRY_SECONDS,
        )
        for name in RERANKERS
    }
    grades = bench.dataset.grades[query.id]
    answers = {document for document, grade in grades.items() if grade >= RELEVANT}

    def seen(one: Candidate) -> Seen:
        name = bench.name_of(one.id)
        return Seen(round(one.score, 5), name in answers, words[name])

    lists = {
        one.leg: [seen(candidate) for candidate in one.candidates] for one in retrieved.rankings
    }
    lists |= {
        f"rerank {name}": [seen(candidate) for candidate in one.candidates]
        for name, one in readings.items()
    }
    heads = {one.leg: one.candidates[0].id for one in retrieved.rankings if one.candidates}
    heads |= {
        f"rerank {name}": one.candidates[0].id for name, one in readings.items() if one.candidates
    }
    heads |= {"fusion": fused[0].id} if fused else {}
    decided = bench.ask(query, "default", FIRST)
    return Asked(
        query=query.id,
        lists=lists,
        floors={one.leg: one.floor for one in retrieved.rankings},
        firsts=heads,
        right={name: bench.name_of(id) in answers for name, id in heads.items()},
        confidence=round(decided.best_relevance or 0.0, 4),
        answers=len(answers),
        words_of_answers=[words[name] for name in sorted(answers)],
    )


def figures(corpora: Corpora) -> Figures:
    everything = [one for asked in corpora.values() for one in asked]
    return {
        "scores": {name: scores(asked) for name, asked in corpora.items()},
        "lengths": lengths(everything),
        "agreement": {
            name: agreement(asked) for name, asked in {**corpora, "all": everything}.items()
        },
        "agreement by confidence": {
            name: agreement([one for one in everything if low <= one.confidence < high])
            for name, (low, high) in {"below .5": (0.0, 0.5), "from .5 on": (0.5, 1.1)}.items()
        },
    }


def scores(asked: Sequence[Asked]) -> Figures:
    """Return the recall of each leg and reranker, and how well its scores separate."""
    rows: Figures = {}
    for leg in (*LEGS, *(f"rerank {name}" for name in RERANKERS)):
        spoke = [one for one in asked if one.lists.get(leg)]
        if not spoke:
            continue
        every = [seen for one in spoke for seen in one.lists[leg]]
        right = np.array([seen.score for seen in every if seen.right])
        wrong = np.array([seen.score for seen in every if not seen.right])
        within = [area for one in spoke if (area := _area(one.lists[leg])) is not None]
        rows[leg] = {
            "spoke": round(len(spoke) / len(asked), 4),
            "of the answers found": round(len(right) / sum(one.answers for one in asked), 4),
            "first is right": _share([one.right[leg] for one in spoke]),
            "right p10 p50 p90": _quantiles(right),
            "wrong p10 p50 p90": _quantiles(wrong),
            "area within a query": _mean(within),
            "area over all queries": round(area_between(right, wrong), 4),
            "median variation": round(float(np.median([_variation(one, leg) for one in spoke])), 4),
        }
    return rows


def lengths(asked: Sequence[Asked]) -> Figures:
    """Return lengths of each leg's first ten and of the answers, and wrong hits' heights."""
    answers = [words for one in asked for words in one.words_of_answers]
    rows: Figures = {
        "answers": {"shares": _by_length(answers), "median": float(np.median(answers))}
    }
    for leg in (*LEGS, *(f"rerank {name}" for name in RERANKERS)):
        first = [seen.words for one in asked for seen in one.lists.get(leg, [])[:FIRST]]
        if first:
            rows[leg] = {
                "shares": _by_length(first),
                "median": float(np.median(first)),
                "deviation of the wrong": _heights(
                    [one.lists[leg] for one in asked if one.lists.get(leg)]
                ),
            }
    return rows


def agreement(asked: Sequence[Asked]) -> Figures:
    """Return how often two agree on the first hit, and how often it is right in each case."""
    rankers = ("fusion", *(f"rerank {name}" for name in RERANKERS), "lexical", "dense")
    rows: Figures = {}
    for one, other in combinations(rankers, 2):
        both = [row for row in asked if one in row.firsts and other in row.firsts]
        same = [row for row in both if row.firsts[one] == row.firsts[other]]
        apart = [row for row in both if row.firsts[one] != row.firsts[other]]
        rows[f"{one} and {other}"] = {
            "agree": _share([row.firsts[one] == row.firsts[other] for row in both]),
            "right where they agree": _share([row.right[one] for row in same]),
            f"{one} right where not": _share([row.right[one] for row in apart]),
            f"{other} right where not": _share([row.right[other] for row in apart]),
        }
    return rows


def area_between(right: np.ndarray[Any, Any], wrong: np.ndarray[Any, Any]) -> float:
    """Return the chance that a right score exceeds a wrong one; ties count half."""
    if not len(right) or not len(wrong):
        return float("nan")
    ordered = np.sort(wrong)
    below, up_to = np.searchsorted(ordered, right, "left"), np.searchsorted(ordered, right, "right")
    return float(np.mean((below + up_to) / 2) / len(wrong))


def _area(ranking: Sequence[Seen]) -> float | None:
    right = np.array([one.score for one in ranking if one.right])
    wrong = np.array([one.score for one in ranking if not one.right])
    return area_between(right, wrong) if len(right) and len(wrong) else None


def _variation(asked: Asked, leg: str) -> float:
    values = np.array([one.score for one in asked.lists[leg]]) - asked.floors.get(leg, 0.0)
    return float(values.std() / abs(values.mean())) if values.mean() else 0.0


def _heights(rankings: Sequence[Sequence[Seen]]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for ranking in rankings:
        values = np.array([one.score for one in ranking])
        sigma = float(values.std())
        for one in ranking:
            if not one.right and sigma:
                found.setdefault(_length_of(one.words), []).append(
                    (one.score - float(values.mean())) / sigma
                )
    return {name: round(float(np.mean(found[name])), 3) for name in LENGTHS if name in found}


def _by_length(words: Sequence[int]) -> dict[str, float]:
    named = [_length_of(one) for one in words]
    return {name: round(named.count(name) / len(named), 3) for name in LENGTHS}


def _length_of(words: int) -> str:
    return next(name for name, (least, most) in LENGTHS.items() if least <= words <= most)


def _quantiles(values: np.ndarray[Any, Any]) -> list[float]:
    return (
        [round(float(one), 4) for one in np.quantile(values, [0.1, 0.5, 0.9])]
        if len(values)
        else []
    )


def _share(flags: Sequence[bool]) -> Figures:
    return _mean([float(flag) for flag in flags]) | {"of": len(flags)}


def _mean(values: Sequence[float]) -> Figures:
    if not values:
        return {"mean": None, "low": None, "high": None}
    drawn = bootstrap_means(np.array(values)[:, None], RESAMPLES, 0)[:, 0]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {
        name: round(float(one), 4)
        for name, one in (("mean", np.mean(values)), ("low", low), ("high", high))
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpora", nargs="+", default=list(CORPORA), help="names, or NAME:DOCUMENTS for a part"
    )
    parser.add_argument("--queries", type=int, help="queries per corpus (default: all)")
    parser.add_argument(
        "--cache", type=Path, help="where the stores are kept; the lab's cache if none"
    )
    parser.add_argument(
        "--kept", type=Path, required=True, help="where what was seen of a corpus is kept"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/results/leg_scores.json"))
    add_embedder(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
