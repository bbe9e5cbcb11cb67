"""On save: which stored memories the new one may update. Told to the caller, who decides; nothing is linked."""

from __future__ import annotations

from collections.abc import Collection

from trivet.analyse import analyse_query
from trivet.memory.changes.compare import Comparison
from trivet.memory.changes.statement import CHARACTERS_READ, states_change
from trivet.memory.changes.verdict import READ_ON_SAVE, Verdict, change_model
from trivet.memory.engine import Engine
from trivet.memory.recall import search_with
from trivet.search.legs.dense import DENSE
from trivet.search.legs.leg import LegQuery
from trivet.search.legs.lexical import LEXICAL
from trivet.secrets import masked
from trivet.types import Filter, Memory, PossibleUpdate, Ranking

REPORTED = 3
SENSITIVE = "on the same matter"


def possible_updates(engine: Engine, new: Memory, known: Collection[str] = ()) -> tuple[PossibleUpdate, ...]:
    """The likeliest first. `known` are those that the caller has named as superseded.

    Where recalls need every core, words alone are compared now; the worker has the texts read when there is room.
    """
    how = engine.settings.changes
    near = _near(engine, new) if how != "off" else None
    if near is None or how == "off":
        return ()
    crowded = how == "read" and engine.load.gives_way() is not None
    comparison = Comparison(engine.store, engine.embedding, "words" if crowded else how, most=READ_ON_SAVE)
    serving = engine.embedding.serving()
    # None but itself waits for its vector.
    alone = serving is None or not engine.store.jobs.waits_for_more_than(serving, 1)
    judged = comparison.keep(new, near.candidates, by_meaning=near.leg == DENSE.name, done=alone and not crowded)
    engine.worker.note(comparison.trouble)
    if not states_change(new.content):
        return ()
    told = change_model().told
    likely = [one for one in judged if one[1].probability >= told and one[0].id not in known]
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


def _possible(old: Memory, verdict: Verdict) -> PossibleUpdate:
    why = SENSITIVE if old.sensitive else verdict.why  # the reason quotes words
    return PossibleUpdate(id=old.id, content=masked(old).content, why=why, probability=verdict.probability)
