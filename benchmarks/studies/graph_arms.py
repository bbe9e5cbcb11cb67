"""Arms of the graph's evidence: two legs retrieved once, walked on from in many ways, fused in many more.

As in arms.py a fusion is measured on kept rankings, without the steps that do not change its order. Walks are made
anew for each way of walking, through the read path's own function, and only the last one is kept.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from arms import Vectors

from trivet.analyse import Question, analyse_query
from trivet.graph.canonical import canonical
from trivet.graph.mentions import ROLES, Triple
from trivet.lab.bench import Bench, memory_id, open_bench
from trivet.lab.compare import Comparison, correct, paired
from trivet.lab.dataset import RELEVANT, Dataset, Query
from trivet.lab.measures import Measured, measure
from trivet.lab.read_files import content, existing
from trivet.memory.answer.decision import Retrieved
from trivet.memory.recall import search_on
from trivet.search.fuse import fuse
from trivet.search.legs import seeds as graph_seeds
from trivet.search.legs.leg import LegQuery
from trivet.search.recipe import Recipe, parse_recipe
from trivet.settings import Settings
from trivet.store.records import Seeds
from trivet.trivet import Trivet
from trivet.types import Filter, Ranking

MEASURES = ("nDCG@10", "recall@5", "recall@10", "all@10")
COMPARED = ("nDCG@10", "recall@10")
DEEP = 20
STEPS = "bm25(k1=0.9, b=0.4) | match(all-then-any) | depth(50) | bonus(0) | prior(0)"
TWO_LEGS = "convex(norm=spread, lexical=1, dense=8)"
GRAPH_ONLY = "convex(norm=raw, lexical=0, dense=0, graph=1)"
# The walk where the query names nothing too, which the product leaves alone.
EVERYWHERE = "everywhere"

Row = dict[str, Any]
Reshape = Callable[[Ranking], Ranking]


class Asked(msgspec.Struct, frozen=True):
    """A query with what the two legs found for it."""

    query: Query
    question: Question
    filter: Filter
    found: Retrieved


class Arms:
    """One corpus: ask for any number of arms, then compare them all at once."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._asked = [self._ask(query) for query in bench.dataset.queries]
        self._walks: dict[str, list[Ranking]] = {}

    def two_legs(self, fusion: str = TWO_LEGS) -> Measured:
        return self._measured(fusion, [Ranking(leg="graph", floor=0.0)] * len(self._asked))

    def three_legs(self, fusion: str, walk: str = "walk()", reshape: Reshape | None = None) -> Measured:
        graphs = self.walks(walk)
        return self._measured(fusion, [reshape(one) for one in graphs] if reshape else graphs)

    def walks(self, walk: str = "walk()") -> list[Ranking]:
        """The graph leg's ranking for every query."""
        if walk not in self._walks:
            everywhere = walk == EVERYWHERE
            recipe = parse_recipe(f"{TWO_LEGS} | {'walk(named=0)' if everywhere else walk} | {STEPS}")
            self._walks = {walk: [self._walk(asked, recipe, everywhere) for asked in self._asked]}
        return self._walks[walk]

    def silent(self, walk: str = "walk()") -> set[str]:
        """The queries for which the graph leg has nothing to say."""
        return {asked.query.id for asked, one in zip(self._asked, self.walks(walk), strict=True) if not one.candidates}

    def spoke(self, walk: str = "walk()") -> float:
        return 1 - len(self.silent(walk)) / len(self._asked)

    def answers(self, fusion: str, walk: str | None = "walk()") -> dict[str, list[str]]:
        """The documents of each query in order, best first."""
        silent = [Ranking(leg="graph", floor=0.0)] * len(self._asked)
        return {
            query: [name for name, _ in found]
            for query, found in self._run(fusion, silent if walk is None else self.walks(walk))
        }

    def pools(self) -> dict[str, set[str]]:
        """All that the two legs returned for each query."""
        return {
            asked.query.id: {
                self.bench.name_of(one.id) for ranking in asked.found.rankings for one in ranking.candidates
            }
            for asked in self._asked
        }

    def _ask(self, query: Query) -> Asked:
        question, filter = analyse_query(query.text), Filter(scope=query.scope)
        recipe = parse_recipe(f"{TWO_LEGS} | legs(lexical, dense) | {STEPS}")
        return Asked(
            query, question, filter, self.bench.legs.retrieve(self.bench.trivet.engine, question, filter, recipe)
        )

    def _walk(self, asked: Asked, recipe: Recipe, everywhere: bool) -> Ranking:
        if asked.found.narrowed:
            return Ranking(leg="graph", floor=0.0)
        engine = self.bench.trivet.engine
        query = LegQuery(engine.store, engine.embedding, asked.question, asked.filter, recipe)
        walked = search_on(engine, query, asked.found)
        ranking = next(one for one in walked.rankings if one.leg == "graph")
        if everywhere and not ranking.candidates:
            hits, standing_out = graph_seeds._hits(asked.found.rankings, recipe.walk)
            seeds = Seeds({id: standing_out * recipe.walk.hits * share for id, share in hits.items()}, {})
            found = engine.store.graph.walk(seeds, asked.filter, recipe.walk, recipe.depth)
            return Ranking(leg="graph", floor=0.0, candidates=tuple(found))
        return ranking

    def _measured(self, fusion: str, graphs: Sequence[Ranking]) -> Measured:
        return measure(self.bench.dataset, dict(self._run(fusion, graphs)), MEASURES)

    def _run(self, fusion: str, graphs: Sequence[Ranking]) -> Iterable[tuple[str, list[tuple[str, float]]]]:
        recipe = parse_recipe(f"{fusion} | {STEPS}")
        for asked, graph in zip(self._asked, graphs, strict=True):
            fused = fuse(recipe.fusion, [*asked.found.rankings, graph])[:DEEP]
            yield asked.query.id, [(self.bench.name_of(one.id), -float(rank)) for rank, one in enumerate(fused)]


def three(weight: float, norm: str = "raw") -> str:
    return f"convex(norm=spread, norm.graph={norm}, lexical=1, dense=8, graph={weight:g})"


def rows(arms: Mapping[str, Measured], bases: Mapping[str, Measured]) -> dict[str, Row]:
    """Each arm's means, and its differences from its base with their intervals.

    All are compared in one go: the resamples are the same for every arm, and made once.
    """
    before = {f"{arm}\t{name}": bases[arm].per_query[name] for arm in arms for name in COMPARED}
    after = {f"{arm}\t{name}": one.per_query[name] for arm, one in arms.items() for name in COMPARED}
    compared = {one.measure: one for one in paired(before, after)}
    return {
        arm: {
            "means": {name: round(value, 4) for name, value in one.overall.items()},
            **{name: difference(compared[f"{arm}\t{name}"]) for name in COMPARED},
        }
        for arm, one in arms.items()
    }


def difference(one: Comparison) -> Row:
    figures = {"difference": one.difference, "low": one.low, "high": one.high, "p": one.p}
    return {name: round(value, 5) for name, value in figures.items()} | {"wins": one.wins, "losses": one.losses}


def fewer(dataset: Dataset, queries: int) -> Dataset:
    """The same corpus with the first queries alone: a trial, not a result."""
    kept = dataset.queries[:queries]
    ids = {query.id for query in kept}
    judged = tuple(row for row in dataset.judgements if row.query in ids)
    return Dataset(name=dataset.name, documents=dataset.documents, queries=kept, judgements=judged)


Source = Literal["rules", "triples", "both"]

FILES: Mapping[str, str] = {
    "hotpotqa": "openie_hotpotqa_results_ner_gpt-3.5-turbo-1106_9221.json",
    "musique": "openie_musique_results_ner_gpt-3.5-turbo-1106_11656.json",
}
LEASED = 500
LEASE_SECONDS = 600.0


def given_triples(name: str, data_folder: Path) -> dict[str, list[Any]]:
    """What the model said of each passage, by the passage's text without its spaces."""
    path = existing(data_folder / "multihop", FILES[name])
    entries = json.loads(content(path))["docs"]  # the file has figures that are NaN, which strict readers refuse
    return {squeezed(entry["passage"]): entry["extracted_triples"] for entry in entries}


def squeezed(text: str) -> str:
    return "".join(text.split())


def usable(given: Sequence[Any]) -> tuple[list[Triple], Counter[str]]:
    """The triples a graph can take, and how many were left out for which reason."""
    kept: list[Triple] = []
    counts: Counter[str] = Counter()
    for one in given:
        if not (isinstance(one, list) and len(one) == 3 and all(isinstance(part, str) for part in one)):
            counts["not three texts"] += 1
        elif not (canonical(one[0]) and canonical(one[2])):
            counts["a name of nothing, or too long"] += 1
        else:
            counts["kept"] += 1
            kept.append(Triple(subject=one[0], relation=one[1], object=one[2]))
    return kept, counts


def open_with(
    source: Source, dataset: Dataset, cache: Path, folder: Path, data: Path, embedder: str
) -> tuple[Bench, dict[str, int]]:
    """A bench over a copy of the dataset's store with another graph, and what became of the triples."""
    path = _copy(dataset, cache, folder, embedder)
    if source == "triples":
        keep_titles_only(path)
    with open_bench(dataset, folder, embedder) as bench:
        counts = _add_triples(bench, given_triples(dataset.name, data))
    # Opened anew, so that the network in memory is that of the file.
    return open_bench(dataset, folder, embedder), counts


def open_without_links(dataset: Dataset, cache: Path, folder: Path, embedder: str) -> Trivet:
    """A copy of the dataset's store from which the links are gone. A bench would make them again, so it is none."""
    path = _copy(dataset, cache, folder, embedder)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM link")
    connection.close()
    return Trivet.open(settings=Settings(path=str(path), embedder=embedder, background=False))


def keep_titles_only(path: Path) -> None:
    """Of what the rules found, only what a memory is about stays: in these corpora, its title."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM mention WHERE reader = 'rules' AND role < ?", (ROLES.index("about"),))
        connection.execute("DELETE FROM concept WHERE concept NOT IN (SELECT concept FROM mention)")
    connection.close()


def size_of_graph(bench: Bench) -> dict[str, int]:
    """Mentions, concepts, and concepts that lead anywhere, which are those that two memories mention."""
    connection = sqlite3.connect(bench.trivet.settings.path)
    counted = "SELECT count(DISTINCT memory) AS held FROM mention GROUP BY concept"
    mentions = connection.execute("SELECT count(*) FROM (SELECT 1 FROM mention GROUP BY memory, concept)").fetchone()[0]
    concepts, shared = connection.execute(f"SELECT count(*), sum(held > 1) FROM ({counted})").fetchone()
    connection.close()
    return {"mentions": mentions, "concepts": concepts, "shared concepts": int(shared or 0)}


def _copy(dataset: Dataset, cache: Path, folder: Path, embedder: str) -> Path:
    with open_bench(dataset, cache, embedder) as bench:
        path = folder / Path(bench.trivet.settings.path).name
        bench.trivet.engine.store.upkeep.backup(path)
    return path


def _add_triples(bench: Bench, given: Mapping[str, list[Any]]) -> dict[str, int]:
    graph = bench.trivet.engine.store.graph
    counts: Counter[str] = Counter()
    graph.ask_for_triples()
    while readings := graph.lease("triples", LEASED, LEASE_SECONDS):
        done = []
        for reading in readings:
            said = given.get(squeezed(f"{reading.title or ''}{reading.content}"))
            kept, counted = usable(said or [])
            counts += counted + Counter({"passages without an entry": int(said is None)})
            done.append((reading, kept))
        graph.finish_triples(done)
    return dict(counts)


TOP = 10
POOL = 50


@dataclass(frozen=True)
class Farthest:
    """The relevant passage least like its query: its cosine, and its rank among all by cosine."""

    document: str
    cosine: float
    rank: int


def relevant(dataset: Dataset) -> dict[str, list[str]]:
    unanswerable = set(dataset.unanswerable)
    return {
        query: [document for document, grade in judged.items() if grade >= RELEVANT]
        for query, judged in dataset.grades.items()
        if query not in unanswerable
    }


def farthest_hops(bench: Bench) -> dict[str, Farthest]:
    """For each query over a corpus without scopes, by exact search with a memory's best passage."""
    vectors = Vectors(bench)
    ids, place = np.unique(vectors._ids, return_inverse=True)
    row_of = {str(id): row for row, id in enumerate(ids)}
    model = bench.trivet.engine.embedding.serving()
    assert model is not None
    wanted = relevant(bench.dataset)
    found: dict[str, Farthest] = {}
    for query in bench.dataset.queries:
        if query.id not in wanted:
            continue
        cosines = np.full(len(ids), -1.0)
        np.maximum.at(cosines, place, vectors.vectors @ bench.trivet.engine.embedding.query_vector(model, query.text))
        document = min(wanted[query.id], key=lambda one: (float(cosines[row_of[memory_id(one)]]), one))
        cosine = float(cosines[row_of[memory_id(document)]])
        found[query.id] = Farthest(document, cosine, int(np.count_nonzero(cosines > cosine)) + 1)
    return found


def by_nearness(hops: Mapping[str, Farthest]) -> dict[str, tuple[str, ...]]:
    """Thirds by cosine, and where plain vector search has the farthest hop."""
    ordered = sorted(hops, key=lambda query: (-hops[query].cosine, query))
    cuts = [round(len(ordered) * part / 3) for part in range(4)]
    thirds = {
        f"farthest hop {name} by cosine": tuple(ordered[cuts[part] : cuts[part + 1]])
        for part, name in enumerate(("nearest third", "middle third", "farthest third"))
    }
    ranked = {
        f"farthest hop in the dense top {TOP}": tuple(query for query in hops if hops[query].rank <= TOP),
        f"farthest hop at dense rank {TOP + 1} to {POOL}": tuple(q for q in hops if TOP < hops[q].rank <= POOL),
        f"farthest hop below dense rank {POOL}": tuple(query for query in hops if hops[query].rank > POOL),
    }
    return {name: queries for name, queries in (thirds | ranked).items() if queries}


def moved(
    wanted: Mapping[str, Sequence[str]],
    queries: Sequence[str],
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
    pools: Mapping[str, set[str]],
) -> dict[str, int]:
    """Relevant passages that entered or left the first ten, and those among them that neither leg had at all."""
    counts = {
        "relevant": 0,
        "missed by two legs": 0,
        "brought in": 0,
        "pushed out": 0,
        "out of pool": 0,
        "from nowhere": 0,
    }
    for query in queries:
        had, has = set(before[query][:TOP]), set(after[query][:TOP])
        for document in wanted[query]:
            counts["relevant"] += 1
            counts["missed by two legs"] += document not in had
            counts["brought in"] += document in has and document not in had
            counts["pushed out"] += document in had and document not in has
            counts["out of pool"] += document not in pools[query]
            counts["from nowhere"] += document in has and document not in pools[query]
    return counts


def compared(base: Measured, candidate: Measured, strata: Mapping[str, Sequence[str]]) -> dict[str, Row]:
    """The differences in each stratum, p corrected over all strata and both measures together."""
    family = [
        one
        for name, queries in strata.items()
        for one in paired(
            {measure: {query: base.per_query[measure][query] for query in queries} for measure in COMPARED},
            {measure: {query: candidate.per_query[measure][query] for query in queries} for measure in COMPARED},
            stratum=name,
        )
    ]
    table: dict[str, Row] = {name: {"queries": len(queries)} for name, queries in strata.items()}
    for one in correct(family):
        figures = difference(one) | {"base": round(one.base, 4), "candidate": round(one.candidate, 4)}
        table[str(one.stratum)][one.measure] = figures | {"corrected_p": round(one.corrected_p, 5)}
    return table
