"""Write the evaluation data of learned stages: passages, queries, grades and the legs' rankings.

TRIVET_DATA=/path/to/originals python dump_eval.py --stores FOLDER --output FOLDER

A model can then be judged without stores: the dense leg is recomputed from the passages, lexical
and graph rankings are read from here. The graph's walk starts from the other legs' hits, so its
ranking belongs to the stock embedder. Each corpus also gets unanswerable queries: those of other
corpora and, with scopes, its own in a wrong scope.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_texts import CORPORA, Memory, passages_of
from trivet.analyse import analyse_query
from trivet.lab.datasets.catalog import import_original
from trivet.lab.datasets.dataset import Dataset, Query
from trivet.lab.datasets.plain_layout import house
from trivet.lab.measure.bench import Bench, memory_id, open_bench
from trivet.search.recipe import parse_recipe
from trivet.types import Filter, Ranking

LEGS = ("lexical", "dense", "graph")
DEPTH = 50
SEED = 11
# Queries taken from each other corpus, and own queries asked in another scope.
FOREIGN, SHUFFLED = 50, 250
RECIPE = parse_recipe(f"depth({DEPTH}) | bonus(0) | prior(0)")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--embedder", default="bundled")
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    datasets = {name: house() if name == "house" else import_original(name) for name in CORPORA}
    for name in arguments.corpora:
        with open_bench(datasets[name], arguments.stores, arguments.embedder) as bench:
            path = arguments.output / f"{name}.json.xz"
            data = dumped(bench, unanswerable_for(name, datasets))
            path.write_bytes(lzma.compress(json.dumps(data, ensure_ascii=False).encode(), preset=6))
            print(
                name,
                len(data["queries"]),
                len(data["unanswerable"]),
                path.stat().st_size,
                flush=True,
            )


def dumped(bench: Bench, unanswerable: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    dataset = bench.dataset
    places = {memory_id(document.id): place for place, document in enumerate(dataset.documents)}
    passages = _passages(bench)
    queries = _queries(dataset)
    return {
        "name": dataset.name,
        "scopes": [document.scope for document in dataset.documents],
        "passages": [text for _, text in passages],
        "document_of": [place for place, _ in passages],
        # Sensitive texts have no vector, but the lexical leg finds them and a local reranker may
        # read them.
        "unembedded": [
            [place, one.text] for place, one in enumerate(dataset.documents) if one.sensitive
        ],
        "queries": queries,
        **_rankings(bench, queries, places),
        "unanswerable": unanswerable,
        "unanswerable_rankings": _rankings(bench, unanswerable, places),
    }


def unanswerable_for(name: str, datasets: Mapping[str, Dataset]) -> list[dict[str, Any]]:
    """Return other corpora's queries, own queries in a wrong scope, and known unanswerable ones."""
    chance = random.Random(SEED)
    own = datasets[name]
    scopes = sorted({query.scope for query in own.queries if query.scope is not None})
    asked = []
    for other, dataset in datasets.items():
        if other == name:
            continue
        for query in chance.sample(_answerable(dataset), min(FOREIGN, len(_answerable(dataset)))):
            scope = chance.choice(scopes) if scopes else None
            asked.append({"text": query.text, "scope": scope, "source": other})
    if len(scopes) > 1:
        for query in chance.sample(_answerable(own), min(SHUFFLED, len(_answerable(own)))):
            scope = chance.choice([one for one in scopes if one != query.scope])
            asked.append({"text": query.text, "scope": scope, "source": "wrong scope"})
    none = frozenset(own.unanswerable)
    asked += [
        {"text": query.text, "scope": query.scope, "source": "own"}
        for query in own.queries
        if query.id in none
    ]
    return asked


def _answerable(dataset: Dataset) -> list[Query]:
    none = frozenset(dataset.unanswerable)
    return [query for query in dataset.queries if query.id not in none]


def _passages(bench: Bench) -> list[tuple[int, str]]:
    embedding = bench.trivet.engine.embedding
    model = embedding.serving()
    assert model is not None
    embedder = embedding.embedder_of(model)
    return [
        (place, text)
        for place, document in enumerate(bench.dataset.documents)
        if not document.sensitive
        for text in passages_of(embedder, Memory(document.text, document.title))
    ]


def _queries(dataset: Dataset) -> list[dict[str, Any]]:
    places = {document.id: place for place, document in enumerate(dataset.documents)}
    return [
        {
            "text": query.text,
            "scope": query.scope,
            "stratum": query.stratum,
            "grades": {
                str(places[document]): grade for document, grade in dataset.grades[query.id].items()
            },
        }
        for query in _answerable(dataset)
    ]


def _rankings(
    bench: Bench, queries: Iterable[Mapping[str, Any]], places: Mapping[str, int]
) -> dict[str, Any]:
    rankings: dict[str, list[list[tuple[int, float]]]] = {leg: [] for leg in LEGS}
    for query in queries:
        question = analyse_query(query["text"])
        retrieved = bench.legs.retrieve(
            bench.trivet.engine, question, Filter(scope=query["scope"]), RECIPE
        )
        by_leg = {ranking.leg: ranking for ranking in retrieved.rankings}
        for leg in LEGS:
            rankings[leg].append(_pairs(by_leg.get(leg), places))
    return rankings


def _pairs(ranking: Ranking | None, places: Mapping[str, int]) -> list[tuple[int, float]]:
    if ranking is None:
        return []
    return [
        (places[candidate.id], float(f"{candidate.score:.6g}"))
        for candidate in ranking.candidates[:DEPTH]
    ]


if __name__ == "__main__":
    main()
