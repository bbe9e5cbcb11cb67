"""Dump the features of recalled candidates, with their judgements, by running the product's own read path.

    python training/dump_features.py --stores CACHE --output features.npz [--queries 300] [--embedder stock]

Datasets come from the lab's shelf (`trivet lab import`) or, with --data, from their originals; stores are made in CACHE
on first use. Of each query the best candidates are kept, and each query is asked in several ways (`kind`):

    own      as it is: its judged documents are relevant
    foreign  another corpus' question: nothing is relevant
    scope    asked in another scope of the same corpus, where there are scopes: nothing is relevant
    small    in a store of a few documents, those of some queries and others; absent: there, but of a query left out

Columns of the .npz: `features` (rows x names), `names`, `label` (grade of the row's document), `query` (row to query),
`fused` (the fused score) and, by query, `corpus`, `kind`, `recipe`, `text` and `relevant` (how many documents are).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from trivet.analyse import analyse_query
from trivet.contract import Recall
from trivet.lab.bench import Bench, open_bench
from trivet.lab.catalog import IMPORTERS, find_dataset
from trivet.lab.dataset import RELEVANT, Dataset, Query
from trivet.memory.recall import retrieve
from trivet.search.filters import filter_of
from trivet.search.fuse import fuse
from trivet.search.recipe import Recipe, parse_recipe
from trivet.search.relevance.features import Evidence, feature_names
from trivet.types import Fused

CORPORA = ("locomo", "lihua", "scifact", "cranfield", "cosqa", "hotpotqa", "musique", "house")
RECIPES = ("default", "legs(lexical)")
KEPT = 30
SMALL_SIZES = (12, 120)
SMALL_QUERIES = 8


@dataclass
class Dump:
    features: list[list[float]] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    query: list[int] = field(default_factory=list)
    fused: list[float] = field(default_factory=list)
    corpus: list[str] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    recipe: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    relevant: list[int] = field(default_factory=list)

    def save(self, path: Path) -> None:
        columns: dict[str, Any] = {
            name: np.array(getattr(self, name)) for name in self.__dataclass_fields__ if name != "features"
        }
        matrix = np.array(self.features, dtype=np.float32)
        np.savez_compressed(path, features=matrix, names=np.array(feature_names()), **columns)


@dataclass(frozen=True)
class Asked:
    """One query as it is to be asked of a bench."""

    kind: str
    query: Query
    grades: dict[str, int]


def main() -> None:
    options = _options()
    chosen = random.Random(1)
    datasets = {name: _dataset(name, options.data) for name in options.corpora}
    dump = Dump()
    for name, dataset in datasets.items():
        others = [query.text for other, one in datasets.items() if other != name for query in one.queries]
        with open_bench(dataset, options.stores, options.embedder) as bench:
            asked = list(_asked(dataset, others, options.queries, chosen))
            ask_all(bench, asked, dump)
        for number, size in enumerate(SMALL_SIZES):
            small, asked = small_dataset(dataset, size, chosen)
            with open_bench(small, options.stores / "small", options.embedder) as bench:
                ask_all(bench, asked, dump, f"{name}-{number}")
        print(f"{name}: {len(dump.corpus)} queries, {len(dump.label)} rows so far", flush=True)
        dump.save(options.output)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--embedder", default="bundled", choices=("bundled", "stock"))
    parser.add_argument("--queries", type=int, default=300, help="most queries of a corpus and kind")
    parser.add_argument("--data", type=Path, help="the folder of the originals")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA))
    return parser.parse_args()


def _dataset(name: str, data: Path | None) -> Dataset:
    return IMPORTERS[name](data) if data is not None and name in IMPORTERS else find_dataset(name)


def _asked(dataset: Dataset, others: Sequence[str], most: int, chosen: random.Random) -> Iterator[Asked]:
    answerable = [query for query in dataset.queries if query.id not in set(dataset.unanswerable)]
    sample = chosen.sample(answerable, min(most, len(answerable)))
    scopes = sorted({query.scope for query in dataset.queries if query.scope})
    foreign = chosen.sample(others, min(len(sample), len(others)))
    for number, query in enumerate(sample):
        yield Asked("own", query, dict(dataset.grades[query.id]))
        if number < len(foreign):
            yield Asked("foreign", msgspec.structs.replace(query, text=foreign[number]), {})
        if len(scopes) > 1:
            elsewhere = chosen.choice([scope for scope in scopes if scope != query.scope])
            yield Asked("scope", msgspec.structs.replace(query, scope=elsewhere), {})


def small_dataset(dataset: Dataset, size: int, chosen: random.Random) -> tuple[Dataset, list[Asked]]:
    """A store as it is at first: the documents of a few queries, some others, and queries of what is not there."""
    answerable = [query for query in dataset.queries if query.id not in set(dataset.unanswerable)]
    sample = chosen.sample(answerable, min(2 * SMALL_QUERIES, len(answerable)))
    here, away = sample[:SMALL_QUERIES], sample[SMALL_QUERIES:]
    wanted = {id for query in here for id, grade in dataset.grades[query.id].items() if grade >= RELEVANT}
    unwanted = {id for query in away for id, grade in dataset.grades[query.id].items() if grade >= RELEVANT} - wanted
    rest = [document.id for document in dataset.documents if document.id not in wanted | unwanted]
    filling = chosen.sample(rest, max(0, min(len(rest), size - len(wanted))))
    kept = tuple(
        msgspec.structs.replace(document, links=(), scope=None)
        for document in dataset.documents
        if document.id in wanted or document.id in set(filling)
    )
    small = Dataset(name=f"{dataset.name}-{size}", documents=kept, queries=tuple(sample), judgements=())
    asked = [Asked("small", _anywhere(query), dict(dataset.grades[query.id])) for query in here]
    return small, asked + [Asked("absent", _anywhere(query), {}) for query in away]


def _anywhere(query: Query) -> Query:
    return msgspec.structs.replace(query, scope=None)


def ask_all(bench: Bench, asked: Sequence[Asked], dump: Dump, corpus: str = "") -> None:
    for one in asked:
        for recipe in RECIPES:
            _ask(bench, one, recipe, dump, corpus or bench.dataset.name)


def _ask(bench: Bench, asked: Asked, name: str, dump: Dump, corpus: str) -> None:
    engine, recipe = bench.trivet.engine, parse_recipe(name)
    filter = filter_of(Recall(query=asked.query.text, scope=asked.query.scope), engine.settings, None)
    question = analyse_query(asked.query.text)
    retrieved = retrieve(engine, question, filter, recipe)
    fused = fuse(recipe.fusion, retrieved.rankings)
    evidence = Evidence(engine.store, question, filter, recipe, fused, retrieved.rankings)
    _keep(bench, asked, recipe, fused[:KEPT], evidence, dump, corpus)


def _keep(
    bench: Bench,
    asked: Asked,
    recipe: Recipe,
    fused: Sequence[Fused],
    evidence: Evidence,
    dump: Dump,
    corpus: str,
) -> None:
    memories = bench.trivet.engine.store.memories.get_many([hit.id for hit in fused])
    number = len(dump.corpus)
    dump.corpus.append(corpus)
    dump.kind.append(asked.kind)
    dump.recipe.append("lexical" if recipe.legs == ("lexical",) else "all")
    dump.text.append(asked.query.text)
    dump.relevant.append(sum(grade >= RELEVANT for grade in asked.grades.values()))
    for hit in fused:
        known = evidence.of(hit.id, memories[hit.id])
        assert known is not None, "all that is kept lies within the head"
        dump.features.append([known[name] for name in feature_names()])
        dump.label.append(asked.grades.get(bench.name_of(hit.id), 0))
        dump.query.append(number)
        dump.fused.append(hit.score)


if __name__ == "__main__":
    main()
