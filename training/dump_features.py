r"""Dump features and judgments of recalled candidates, from the product's own read path.

python training/dump_features.py --stores CACHE --output features.npz [--lives FOLDER] \
    [--pairs FOLDER] [--data DIR]

Material: `--lives` has realistic small stores (training/lives), `--pairs` question and passage sets
in build_train.py's layout, and `--data` test collections, used for judging only. CACHE keeps
vectors, so a text is embedded once. Each query is asked in several ways (`kind`), and its best
candidates are kept:

own      as it is: its judged documents are relevant; none: an unanswerable one of this store
foreign  another store's question: nothing is relevant
scope    asked in another scope of the same corpus, where there are scopes: nothing is relevant
small    in a store of a few documents, those of some queries and others
absent   in such a store, but of a query left out

Columns of the .npz: `features` (rows x names), `names`, `label` (grade of the row's document),
`query` (row to query), `fused` (the fused score) and, by query, `name`, `corpus`, `kind`,
`stratum`, `recipe`, `text`, `size` (memories in the store) and `relevant` (number of relevant
documents). OUTPUT.json.xz adds, for queries asked with all legs, the texts a reranker would read:
`answers.py` scores them by models that did not see them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kept_vectors import keep_vectors
from trivet.contract import Recall
from trivet.lab.datasets.catalog import IMPORTERS
from trivet.lab.datasets.dataset import RELEVANT, Dataset, Document, Judgement, Query
from trivet.lab.datasets.plain_layout import house, load
from trivet.lab.measure.bench import Bench, open_bench
from trivet.lab.measure.delivery import ANSWERS
from trivet.memory.answer.rerank import rerank_texts
from trivet.memory.answer.retrieve import retrieve
from trivet.search.fuse import fuse
from trivet.search.query import ask, build_filter
from trivet.search.recipe import parse_recipe
from trivet.search.relevance_features import Evidence, feature_names

COLLECTIONS = ("locomo", "lihua", "scifact", "cranfield", "cosqa", "hotpotqa", "musique")
PAIRS = ("squad_v1.1", "quac", "boolq", "policyqa", "medquad", "selqa")
# Documents in the largest store made from a collection or set of pairs.
LARGEST = 1_500
RECIPES = ("default", "legs(lexical)")
KEPT = 30
# Number of first candidates the reranker reads.
READ = 8
SMALL_SIZES = (5, 8, 12, 20, 35, 60, 120, 400)
SMALL_QUERIES = 8
# Larger collections are cut to LARGEST, keeping what answers the chosen queries.
MOST = 6_000
# Foreign questions per hundred questions to a life.
FOREIGN_SHARE = 40


Reading = dict[str, Any]


@dataclass
class Dump:
    features: list[list[float]] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    query: list[int] = field(default_factory=list)
    fused: list[float] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    corpus: list[str] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    stratum: list[str] = field(default_factory=list)
    recipe: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    relevant: list[int] = field(default_factory=list)
    reading: list[Reading] = field(default_factory=list)

    def save(self, path: Path) -> None:
        columns: dict[str, Any] = {
            name: np.array(getattr(self, name))
            for name in self.__dataclass_fields__
            if name not in ("features", "reading")
        }
        matrix = np.array(self.features, dtype=np.float32)
        np.savez_compressed(path, features=matrix, names=np.array(feature_names()), **columns)
        packed = json.dumps(self.reading, ensure_ascii=False).encode()
        path.with_suffix(".json.xz").write_bytes(lzma.compress(packed, preset=3))


@dataclass(frozen=True)
class Asked:
    kind: str
    query: Query
    grades: dict[str, int]


def main() -> None:
    options = _options()
    chosen = random.Random(1)
    options.stores.mkdir(parents=True, exist_ok=True)
    dump = Dump()
    with keep_vectors(options.stores / "vectors.npz"):
        lives = {
            folder.name: read_life(folder)
            for folder in options.lives
            for folder in sorted(_stores(folder))
        }
        _dump_lives(lives, options, chosen, dump)
        _dump_corpora(_corpora(options, chosen), options, chosen, dump)
    dump.save(options.output)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--embedder", default="bundled", help="as in the settings")
    parser.add_argument(
        "--queries", type=int, default=150, help="most queries of a corpus and kind"
    )
    parser.add_argument("--lives", type=Path, nargs="*", default=[], help="folders of small stores")
    parser.add_argument("--pairs", type=Path, help="the folder of the question and passage sets")
    parser.add_argument("--data", type=Path, help="the folder of the test collections' originals")
    parser.add_argument("--corpora", nargs="*", default=[*COLLECTIONS, *PAIRS, "house"])
    return parser.parse_args()


def _corpora(options: argparse.Namespace, chosen: random.Random) -> dict[str, Dataset]:
    found = {}
    for name in options.corpora:
        if name == "house":
            found[name] = house()
        elif name in PAIRS and options.pairs:
            found[name] = pairs_dataset(options.pairs / f"{name}.json.xz", name, chosen)
        elif name in COLLECTIONS and options.data:
            found[name] = IMPORTERS[name](options.data)
    return found


def _stores(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if (path / "corpus.jsonl").exists()]


def read_life(folder: Path) -> Dataset:
    """Return one person's or project's store; same-topic memories are not relevant."""
    life = load(folder, allow_unanswerable=True)
    return replace(life, judgements=tuple(row for row in life.judgements if row.grade >= ANSWERS))


def pairs_dataset(path: Path, name: str, chosen: random.Random) -> Dataset:
    with lzma.open(path) as file:
        pairs = json.load(file)
    texts, rows = pairs["texts"], chosen.sample(pairs["rows"], len(pairs["rows"]))
    wanted: dict[int, None] = {}
    queries, judgements = [], []
    for number, (text, positive, negative) in enumerate(rows):
        if len(wanted) >= LARGEST:
            break
        if text.strip() and all(texts[place].strip() for place in positive):
            wanted.update(dict.fromkeys([*positive, *negative[:4]]))
            queries.append(Query(id=f"q{number}", text=text[:2_000]))
            judgements += [
                Judgement(query=f"q{number}", document=f"d{place}", grade=3) for place in positive
            ]
    documents = tuple(
        Document(id=f"d{place}", text=texts[place]) for place in wanted if texts[place].strip()
    )
    return Dataset(
        name=name, documents=documents, queries=tuple(queries), judgements=tuple(judgements)
    )


def _dump_lives(
    lives: dict[str, Dataset], options: argparse.Namespace, chosen: random.Random, dump: Dump
) -> None:
    for name, dataset in lives.items():
        others = [
            query.text for other, one in lives.items() if other != name for query in one.queries
        ]
        asked = [Asked("own", query, dict(dataset.grades[query.id])) for query in dataset.queries]
        foreign = chosen.sample(others, min(len(others), FOREIGN_SHARE * len(asked) // 100))
        asked += [
            Asked("foreign", Query(id=f"{name}/f{n}", text=text), {})
            for n, text in enumerate(foreign)
        ]
        with open_bench(dataset, options.stores, options.embedder) as bench:
            ask_all(bench, asked, dump, f"life-{name}")
    print(f"lives: {len(dump.corpus)} queries, {len(dump.label)} rows", flush=True)


def _dump_corpora(
    datasets: dict[str, Dataset], options: argparse.Namespace, chosen: random.Random, dump: Dump
) -> None:
    for name, dataset in datasets.items():
        others = [
            query.text for other, one in datasets.items() if other != name for query in one.queries
        ]
        whole = (
            dataset
            if len(dataset.documents) <= MOST
            else subset(dataset, LARGEST, options.queries, chosen)
        )
        with open_bench(whole, options.stores, options.embedder) as bench:
            ask_all(bench, list(_asked(whole, others, options.queries, chosen)), dump, name)
        for size in SMALL_SIZES:
            small, asked = small_dataset(dataset, size, chosen)
            with open_bench(small, options.stores / "small", options.embedder) as bench:
                ask_all(bench, asked, dump, f"{name}-{size}")
        print(f"{name}: {len(dump.corpus)} queries, {len(dump.label)} rows so far", flush=True)
        dump.save(options.output)


def subset(dataset: Dataset, size: int, queries: int, chosen: random.Random) -> Dataset:
    """Return a store of about `size` documents that answer some of the queries."""
    answerable = [query for query in dataset.queries if query.id not in set(dataset.unanswerable)]
    sample = chosen.sample(answerable, min(queries, len(answerable)))
    wanted = {
        id
        for query in sample
        for id, grade in dataset.grades[query.id].items()
        if grade >= RELEVANT
    }
    rest = [document.id for document in dataset.documents if document.id not in wanted]
    kept = wanted | set(chosen.sample(rest, max(0, min(len(rest), size - len(wanted)))))
    return Dataset(
        name=f"{dataset.name}-{size}",
        documents=tuple(document for document in dataset.documents if document.id in kept),
        queries=tuple(sample),
        judgements=tuple(
            row
            for row in dataset.judgements
            if row.document in kept and row.query in {query.id for query in sample}
        ),
    )


def _asked(
    dataset: Dataset, others: Sequence[str], most: int, chosen: random.Random
) -> Iterator[Asked]:
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


def small_dataset(
    dataset: Dataset, size: int, chosen: random.Random
) -> tuple[Dataset, list[Asked]]:
    """Return a new store: documents of a few queries, others, and queries it cannot answer."""
    answerable = [query for query in dataset.queries if query.id not in set(dataset.unanswerable)]
    few = max(2, min(SMALL_QUERIES, size // 2))
    sample = chosen.sample(answerable, min(2 * few, len(answerable)))
    here, away = sample[:few], sample[few:]
    wanted = {
        id for query in here for id, grade in dataset.grades[query.id].items() if grade >= RELEVANT
    }
    unwanted = {
        id for query in away for id, grade in dataset.grades[query.id].items() if grade >= RELEVANT
    } - wanted
    rest = [document.id for document in dataset.documents if document.id not in wanted | unwanted]
    filling = set(chosen.sample(rest, max(0, min(len(rest), size - len(wanted)))))
    kept = tuple(
        msgspec.structs.replace(document, links=(), scope=None)
        for document in dataset.documents
        if document.id in wanted or document.id in filling
    )
    small = Dataset(
        name=f"{dataset.name}-{size}", documents=kept, queries=tuple(sample), judgements=()
    )
    asked = [Asked("small", _anywhere(query), dict(dataset.grades[query.id])) for query in here]
    return small, asked + [Asked("absent", _anywhere(query), {}) for query in away]


def _anywhere(query: Query) -> Query:
    return msgspec.structs.replace(query, scope=None)


def ask_all(bench: Bench, asked: Sequence[Asked], dump: Dump, corpus: str) -> None:
    for one in asked:
        for recipe in RECIPES:
            _ask(bench, one, recipe, dump, corpus)


def _ask(bench: Bench, asked: Asked, name: str, dump: Dump, corpus: str) -> None:
    engine, recipe = bench.trivet.engine, parse_recipe(name)
    filter = build_filter(
        Recall(query=asked.query.text, scope=asked.query.scope), engine.settings, None
    )
    question = ask(engine.store, asked.query.text, filter, recipe.bm25)
    retrieved = retrieve(engine, question, filter, recipe)
    fused = fuse(recipe.fusion, retrieved.rankings)
    evidence = Evidence(engine.store, question, filter, recipe, fused, retrieved.rankings)
    memories = engine.store.memories.get_many([hit.id for hit in fused[:KEPT]])
    number = len(dump.corpus)
    if "dense" in recipe.legs:
        first = [memories[hit.id] for hit in fused[:READ]]
        places = {memory.id: place for place, memory in enumerate(first)}
        texts = rerank_texts(engine, question, first, retrieved.rankings)
        dump.reading.append(
            {
                "query": number,
                "corpus": corpus,
                "text": asked.query.text,
                "texts": [one.text for one in texts],
                "places": [places[one.id] for one in texts],
            }
        )
    dump.name.append(asked.query.id)
    dump.corpus.append(corpus)
    dump.kind.append(asked.kind)
    dump.stratum.append(asked.query.stratum or "")
    dump.recipe.append("lexical" if recipe.legs == ("lexical",) else "all")
    dump.text.append(asked.query.text)
    dump.size.append(engine.store.memories.visible_count(filter))
    dump.relevant.append(sum(grade >= RELEVANT for grade in asked.grades.values()))
    for hit in fused[:KEPT]:
        known = evidence.of(hit.id, memories[hit.id])
        assert known is not None, "all that is kept lies within the head"
        dump.features.append([known[name] for name in feature_names()])
        dump.label.append(asked.grades.get(bench.name_of(hit.id), 0))
        dump.query.append(number)
        dump.fused.append(hit.score)


if __name__ == "__main__":
    main()
