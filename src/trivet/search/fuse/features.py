"""What the legs' rankings say about fused candidates, as named numbers; models are trained on the very same ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivet.search.fuse.normalise import raw, spread
from trivet.types import Fused, Ranking

# So many of the best are looked at together; later ones hardly ever belong to an answer.
HEAD = 50
# A place in a leg's list counts 10 / (10 + place): the first few differ, the later ones hardly do.
PLACE_CONSTANT = 10.0
# Legs agree on what both have among so many of their first.
AGREED_HEAD = 10

LEG_FEATURES: tuple[str, ...] = (
    "fixed",  # the fused score as a deviation from the head's mean
    "first",  # one over its place
    "lexical", "dense",  # scores, the lexical one as a logarithm; that of the last hit for what a leg did not return
    "lexical_spread", "dense_spread", "graph_raw",  # scores as the default fusion sees them
    "lexical_rank", "dense_rank", "graph_rank",  # places, as above; 0 where a leg did not return it
    "lexical_gap", "dense_gap",  # how far ahead of the next in its leg
    "lexical_silent", "dense_silent",  # 1 where a leg returned nothing at all
    "dense_top", "legs_agree",  # of the query: the best cosine, the share of first hits that both legs have
)  # fmt: skip


class LegFeatures:
    """Of the first candidates of a fused list; made for an answer, asked for each candidate that matters."""

    def __init__(self, fused: Sequence[Fused], rankings: Sequence[Ranking]) -> None:
        self._head = fused[:HEAD]
        legs = {ranking.leg: _Leg(ranking) for ranking in rankings if ranking.candidates}
        self._dense, self._lexical, self._graph = legs.get("dense"), legs.get("lexical"), legs.get("graph")
        self._deviations = _deviations([hit.score for hit in self._head])
        self._query = {
            "dense_top": self._dense.best if self._dense else 0.0,
            "legs_agree": _agreement(rankings),
            "lexical_silent": float(self._lexical is None),
            "dense_silent": float(self._dense is None),
        }

    def __len__(self) -> int:
        return len(self._head)

    def of(self, at: int) -> dict[str, float]:
        """The features of the candidate at this place, counted from 0."""
        id, dense, lexical, graph = self._head[at].id, self._dense, self._lexical, self._graph
        return {
            "fixed": self._deviations[at],
            "first": 1.0 / (at + 1),
            "lexical": math.log1p(lexical.score(id)) if lexical else 0.0,
            "dense": dense.score(id) if dense else 0.0,
            "lexical_spread": lexical.normalised(id) if lexical else 0.0,
            "dense_spread": dense.normalised(id) if dense else 0.0,
            "graph_raw": graph.normalised(id) if graph else 0.0,
            "lexical_rank": lexical.place(id) if lexical else 0.0,
            "dense_rank": dense.place(id) if dense else 0.0,
            "graph_rank": graph.place(id) if graph else 0.0,
            "lexical_gap": lexical.gap(id) if lexical else 0.0,
            "dense_gap": dense.gap(id) if dense else 0.0,
            **self._query,
        }


class _Leg:
    """One leg's ranking, looked up by the id of a memory."""

    def __init__(self, ranking: Ranking) -> None:
        norm = (raw if ranking.leg == "graph" else spread)(ranking)
        self._places = {candidate.id: place for place, candidate in enumerate(ranking.candidates)}
        self._scores = [candidate.score for candidate in ranking.candidates]
        self._norms, self._missing = norm.scores, norm.missing

    @property
    def best(self) -> float:
        return self._scores[0]

    def score(self, id: str) -> float:
        return self._scores[self._places.get(id, -1)]

    def normalised(self, id: str) -> float:
        return self._norms[self._places[id]] if id in self._places else self._missing

    def place(self, id: str) -> float:
        return PLACE_CONSTANT / (PLACE_CONSTANT + self._places[id] + 1) if id in self._places else 0.0

    def gap(self, id: str) -> float:
        if id not in self._places:
            return 0.0
        place = self._places[id]
        after = self._norms[place + 1] if place + 1 < len(self._norms) else self._missing
        return self._norms[place] - after


def _agreement(rankings: Sequence[Ranking]) -> float:
    heads = [
        {candidate.id for candidate in ranking.candidates[:AGREED_HEAD]}
        for ranking in rankings
        if ranking.leg in ("lexical", "dense")
    ]
    return len(heads[0] & heads[1]) / AGREED_HEAD if len(heads) == 2 else 0.0


def _deviations(scores: Sequence[float]) -> list[float]:
    if not scores:
        return []
    mean = math.fsum(scores) / len(scores)
    sigma = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    return [(score - mean) / sigma if sigma else 0.0 for score in scores]
