"""On save: which stored memories the new one may update. Told to the caller, who decides; nothing is linked."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trivet.analyse import analyse_query
from trivet.memory.changes.statement import CHARACTERS_READ
from trivet.memory.changes.verdict import Verdict, change_model, may_update
from trivet.memory.engine import Engine
from trivet.memory.likeness import fingerprint
from trivet.memory.recall import search_with
from trivet.search.legs.dense import DENSE
from trivet.search.legs.leg import LegQuery
from trivet.search.legs.lexical import LEXICAL
from trivet.secrets import masked
from trivet.types import Filter, Memory, PossibleUpdate, Ranking

# The nearest are compared in full: what a fact replaces is among the first few.
COMPARED = 5
COMPARED_BY_WORDS = 3
# By the bundled model one of a hundred unrelated memories is as near as this, and four of a hundred updates are not.
ONE_MATTER = 0.35
REPORTED = 3
SENSITIVE = "on the same matter"

Judged = tuple[Memory, Verdict]


def possible_updates(engine: Engine, new: Memory, known: Collection[str] = ()) -> tuple[PossibleUpdate, ...]:
    """The likeliest first. `known` are those that the caller has named as superseded."""
    near = _near(engine, new)
    if near is None:
        return ()
    told = change_model().told
    likely = [one for one in _judged(engine, new, near, known) if one[1].probability >= told]
    likely.sort(key=lambda one: (-one[1].probability, one[0].id))
    return tuple(_possible(old, verdict) for old, verdict in likely[:REPORTED])


def _near(engine: Engine, new: Memory) -> Ranking | None:
    """Memories near the new one, by meaning if that can be asked here and now, else by words.

    Its text meets the embedder only if that runs in this process and the memory is not sensitive: a save waits for no
    server. By words it takes longer, since every save makes the index read some of its lists anew.
    """
    question = analyse_query(new.content.replace('"', " ")[:CHARACTERS_READ])
    if not question.words:
        return None
    filter = Filter(scope=new.scope, states=("active",), viewer=engine.viewer)
    query = LegQuery(engine.store, engine.embedding, question, filter, engine.recipe)
    legs = [DENSE, LEXICAL] if engine.embedding.local and not new.sensitive else [LEXICAL]
    answered = (ranking for leg in legs for ranking in search_with(engine, query, [leg]).rankings)
    return next(answered, None)


def _judged(engine: Engine, new: Memory, near: Ranking, known: Collection[str]) -> Iterator[Judged]:
    cosines = {one.id: one.score for one in near.candidates} if near.leg == DENSE.name else {}
    serving = engine.embedding.serving()
    identity = serving.identity if serving else None
    known_embedder = (identity or "").partition("/")[0] in change_model().embedders
    ids = [one.id for one in near.candidates[:COMPARED]]
    # What was stored a moment ago has no vector yet; nearly the same words find it.
    ids += engine.store.lexical.similar(new.id, fingerprint(new.content), COMPARED_BY_WORDS, engine.viewer)
    for old in engine.store.memories.get_many(list(dict.fromkeys(ids))).values():
        if old.id not in known and _comparable(new, old):
            cosine = None if old.sensitive else cosines.get(old.id)
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
