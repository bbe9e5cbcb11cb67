"""Where the graph helps: by the number of hops, and by how near the farthest hop lies to the query by its vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from arms import Vectors
from graph_arms import COMPARED, Row, difference
from trivet.lab.bench import Bench, memory_id
from trivet.lab.compare import correct, paired
from trivet.lab.dataset import RELEVANT, Dataset
from trivet.lab.measures import Measured

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
