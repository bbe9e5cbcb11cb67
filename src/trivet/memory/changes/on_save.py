"""On save: which stored memories the new one may update. Told to the caller, who decides; nothing is linked."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trivet.analyse import analyse_query
from trivet.memory.changes.statement import CHARACTERS_READ
from trivet.memory.changes.verdict import Verdict, change_model, may_update
from trivet.memory.engine import Engine
from trivet.memory.recall import search_with
from trivet.search.legs.dense import DENSE
from trivet.search.legs.leg import LegQuery
from trivet.search.legs.lexical import LEXICAL
from trivet.secrets import masked
from trivet.types import Filter, Memory, PossibleUpdate, Ranking

# The nearest by words and by meaning are compared in full: what a fact replaces is among the first few.
COMPARED = 5
# By the bundled model one of a hundred unrelated memories is as near as this, and four of a hundred updates are not.
ONE_MATTER = 0.35
REPORTED = 3
SENSITIVE = "on the same matter"

Judged = tuple[Memory, Verdict]


def possible_updates(engine: Engine, new: Memory, known: Collection[str] = ()) -> tuple[PossibleUpdate, ...]:
    """The likeliest first. `known` are those that the caller has named as superseded."""
    rankings = _near(engine, new)
    told = change_model().told
    likely = [one for one in _judged(engine, new, rankings, known) if one[1].probability >= told]
    likely.sort(key=lambda one: (-one[1].probability, one[0].id))
    return tuple(_possible(old, verdict) for old, verdict in likely[:REPORTED])


def _near(engine: Engine, new: Memory) -> dict[str, Ranking]:
    """Memories near the new one. Its text meets the embedder only if that runs here and the memory is not sensitive:
    a save waits for no server."""
    question = analyse_query(new.content.replace('"', " ")[:CHARACTERS_READ])
    if not question.words:
        return {}
    filter = Filter(scope=new.scope, states=("active",), viewer=engine.viewer)
    query = LegQuery(engine.store, engine.embedding, question, filter, engine.recipe)
    by_meaning = engine.embedding.local and not new.sensitive
    found = search_with(engine, query, [LEXICAL, DENSE] if by_meaning else [LEXICAL])
    return {ranking.leg: ranking for ranking in found.rankings}


def _judged(engine: Engine, new: Memory, rankings: dict[str, Ranking], known: Collection[str]) -> Iterator[Judged]:
    dense = rankings.get(DENSE.name)
    cosines = {one.id: one.score for one in dense.candidates} if dense else {}
    # What is not among the dense leg's candidates is at most as near as the last of them.
    farthest = min(cosines.values(), default=None)
    serving = engine.embedding.serving()
    identity = serving.identity if serving else None
    known_embedder = (identity or "").partition("/")[0] in change_model().embedders
    near = [one.id for ranking in rankings.values() for one in ranking.candidates[:COMPARED]]
    for old in engine.store.memories.get_many(list(dict.fromkeys(near))).values():
        if old.id not in known and _comparable(new, old):
            cosine = None if old.sensitive else cosines.get(old.id, farthest)
            if known_embedder and cosine is not None and cosine < ONE_MATTER:
                continue
            yield old, may_update(new.content, old.content, cosine, identity)


def _comparable(new: Memory, old: Memory) -> bool:
    """An update comes later, of the same scope and by the same owner: only owners may have a memory superseded.
    Parts of one source stand side by side."""
    same_source = new.source is not None and old.source is not None and new.source.uri == old.source.uri
    return (
        old.id != new.id
        and old.state == "active"
        and old.scope == new.scope
        and old.owner == new.owner
        and old.created_at <= new.created_at
        and not same_source
    )


def _possible(old: Memory, verdict: Verdict) -> PossibleUpdate:
    why = SENSITIVE if old.sensitive else verdict.why  # the reason quotes words
    return PossibleUpdate(id=old.id, content=masked(old).content, why=why, probability=verdict.probability)
