"""What a save reports: memories that the new one may update, and near-duplicates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from trivet.analyse import analyse_query
from trivet.memory.answer.retrieve import run_legs
from trivet.memory.engine import Engine
from trivet.memory.similarity import DUPLICATE_SIMILARITY, Words, similarity_at_least, words_of
from trivet.memory.supersession.compare import UpdateComparison
from trivet.memory.supersession.statement import CHARACTERS_READ, states_explicit_change
from trivet.memory.supersession.verdict import MAX_PAIRS_READ_ON_SAVE, Verdict, change_model
from trivet.search.legs.dense import DENSE
from trivet.search.legs.leg import LegQuery
from trivet.search.legs.lexical import LEXICAL
from trivet.secrets.masking import masked
from trivet.store.records import Entry
from trivet.types import Duplicate, Filter, Memory, PossibleUpdate, Ranking

UPDATES_REPORTED = 3
REASON_IF_SENSITIVE = "on the same matter"


def find_possible_updates(
    engine: Engine, new: Memory, known: Collection[str] = ()
) -> tuple[PossibleUpdate, ...]:
    """Return likely updates, likeliest first, without `known`.

    If recalls need every core, the worker reads the texts later.
    """
    how = engine.settings.changes
    near = _nearest_ranking(engine, new) if how != "off" else None
    if near is None or how == "off":
        return ()
    crowded = how == "read" and engine.load.overload_reason() is not None
    comparison = UpdateComparison(
        engine.store, engine.embedding, "words" if crowded else how, most=MAX_PAIRS_READ_ON_SAVE
    )
    serving = engine.embedding.serving()
    alone = serving is None or not engine.store.jobs.has_more_than(serving, 1)
    judged = comparison.keep(
        new, near.candidates, by_meaning=near.leg == DENSE.name, done=alone and not crowded
    )
    engine.worker.note(comparison.trouble)
    if not states_explicit_change(new.content):
        return ()
    least = change_model().report_from
    likely = [one for one in judged if one[1].probability >= least and one[0].id not in known]
    likely.sort(key=lambda one: (-one[1].probability, one[0].id))
    return tuple(_possible(old, verdict) for old, verdict in likely[:UPDATES_REPORTED])


def _nearest_ranking(engine: Engine, new: Memory) -> Ranking | None:
    """Rank by meaning with a local embedder, else by words: a save waits for no server."""
    question = analyse_query(new.content.replace('"', " ")[:CHARACTERS_READ])
    if not question.words:
        return None
    filter = Filter(scope=new.scope, states=("active",), viewer=engine.viewer)
    query = LegQuery(engine.store, engine.embedding, question, filter, engine.recipe)
    legs = [DENSE, LEXICAL] if engine.embedding.local and not new.sensitive else [LEXICAL]
    answered = (ranking for leg in legs for ranking in run_legs(engine, query, [leg]).rankings)
    return next(answered, None)


def _possible(old: Memory, verdict: Verdict) -> PossibleUpdate:
    why = REASON_IF_SENSITIVE if old.sensitive else verdict.why  # the reason quotes words
    return PossibleUpdate(
        id=old.id, content=masked(old).content, why=why, probability=verdict.probability
    )


# Memories with a similar fingerprint that are compared in full.
DUPLICATES_COMPARED = 20
DUPLICATES_REPORTED = 5
# New memories whose similar ones are read together, since memories of one batch share them: at most
# 40 MB.
DUPLICATE_BATCH = 64


def near_duplicates(engine: Engine, entries: Sequence[Entry]) -> tuple[tuple[Duplicate, ...], ...]:
    return tuple(
        found
        for first in range(0, len(entries), DUPLICATE_BATCH)
        for found in _near_duplicates(engine, entries[first : first + DUPLICATE_BATCH])
    )


def _near_duplicates(engine: Engine, entries: Sequence[Entry]) -> Iterator[tuple[Duplicate, ...]]:
    similar = engine.store.lexical.similar
    ids = [
        similar(one.memory.id, one.document.fingerprint, DUPLICATES_COMPARED, engine.viewer)
        for one in entries
    ]
    wanted = list(dict.fromkeys(id for some in ids for id in some))
    others = engine.store.memories.get_many(wanted) if wanted else {}
    words = {id: words_of(other.content) for id, other in others.items()}
    for one, some in zip(entries, ids, strict=True):
        yield _duplicates_among(
            one.memory, [(others[id], words[id]) for id in some if id in others]
        )


def _duplicates_among(
    memory: Memory, others: Sequence[tuple[Memory, Words]]
) -> tuple[Duplicate, ...]:
    words = words_of(memory.content) if others else Words()
    similar = [
        Duplicate(id=other.id, similarity=round(alike, 3), content=masked(other).content)
        for other, its_words in others
        if other.scope == memory.scope
        and (alike := similarity_at_least(words, its_words, DUPLICATE_SIMILARITY))
    ]
    similar.sort(key=lambda duplicate: (-duplicate.similarity, duplicate.id))
    return tuple(similar[:DUPLICATES_REPORTED])
