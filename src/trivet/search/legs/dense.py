"""The dense leg: each memory by its best passage's cosine, minus the gain expected by chance."""

from __future__ import annotations

from trivet.errors import LegFailed
from trivet.search.legs.leg import Leg, LegQuery
from trivet.store.records import Model
from trivet.types import Candidate, Contribution, Ranking, Why

NAME = "dense"
FLOOR = -1.0
# Feature that tells whether vectors contributed to an answer.
SILENT = f"{NAME}_silent"


def _search(query: LegQuery) -> Ranking:
    serving = query.embedding.serving()
    if serving is None:
        query.embedding.check_key()  # a missing key is the more useful reason
        raise LegFailed("no memory has been embedded yet")
    found = _nearest(query, serving)
    now = query.embedding.serving()
    if (
        now is not None and now.model != serving.model
    ):  # the store moved to another model during the search, so repeat it
        serving, found = now, _nearest(query, now)
    return Ranking(leg=NAME, floor=_floor(query, serving, found), candidates=tuple(found))


def _floor(query: LegQuery, model: Model, found: list[Candidate]) -> float:
    """Use a high floor for a model whose cosines are all high."""
    own = max(FLOOR, query.embedding.floor(model))
    return min(own, found[-1].score) if found else own


def _nearest(query: LegQuery, model: Model) -> list[Candidate]:
    vector = query.embedding.query_vector(model, query.question.text)
    recipe = query.recipe
    return query.store.vectors.search(model, vector, query.filter, recipe.depth, recipe.chance)


def _explain(part: Contribution, why: Why) -> str:
    if part.estimated:
        return f"cosine about {part.score:.2f}, estimated from its words because it has no vector"
    return f"cosine {part.score:.2f}"


DENSE = Leg(
    name=NAME,
    search=_search,
    floor=FLOOR,
    needs_embedder=True,
    in_callers_thread=lambda query: query.embedding.is_available(query.question.text),
    steps=("chance",),
    trust=8 / 9,  # the default fusion's weight, whatever the recipe's own is
    features={
        NAME: "score",
        f"{NAME}_spread": "normalised",
        f"{NAME}_rank": "place",
        f"{NAME}_gap": "gap",
        SILENT: "silent",
        f"{NAME}_top": "best",
    },
    unit="cosine, -1 to 1",
    explain=_explain,
    resting=lambda query: query.embedding.resting(query.question.text),
    late=lambda query: query.embedding.late(),
)
