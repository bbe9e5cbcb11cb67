"""Memories without a stored vector take part in a recall by meaning all the same.

The latest that wait for the worker are embedded on the spot: what was remembered a moment ago is found as it will be a
minute later. What stays without a vector (a sensitive memory, one that waits for a hosted embedder) is unknown to the
dense leg, not last in it: its cosine is estimated from the words it shares with the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trivet.bounded_cache import MIB, BoundedCache
from trivet.errors import EmbedderError
from trivet.memory.answer.decision import Retrieved
from trivet.memory.background.cut import cut_job
from trivet.memory.engine import Engine
from trivet.models.embed.background import Background
from trivet.search.indexed_texts import IndexedTexts
from trivet.search.legs.dense import NAME as DENSE
from trivet.search.legs.leg import LegQuery
from trivet.search.relevance.wording import Wording
from trivet.store.records import Job, Model
from trivet.types import Candidate, Ranking

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder

# Embedded on the caller's time: a few milliseconds each with the bundled model.
MOST_EMBEDDED = 4
MOST_PASSAGES = 6
# For the passages of those that were cut on the spot.
CUT_BYTES = 2 * MIB
# Only what another leg ranks so high is worth an estimate.
MOST_ESTIMATED = 10
# How near a memory with these words is on average: least squares over the lexical hits of training/lives.
ESTIMATE = {"coverage": 0.25, "pairs": 0.2}
ESTIMATE_WITHOUT_WORDS = 0.2

_cut_lately: BoundedCache[tuple[str, str | None, str], list[str]] = BoundedCache(CUT_BYTES)


def with_unembedded(engine: Engine, query: LegQuery, found: Retrieved) -> Retrieved:
    """The rankings of the first legs, the dense one with what it could not see."""
    dense = next((ranking for ranking in found.rankings if ranking.leg == DENSE), None)
    serving = engine.embedding.serving()
    if dense is None or serving is None:
        return found
    notes = found.notes
    try:
        fresh = list(_fresh(engine, query, serving, dense))
    except EmbedderError as error:  # they are estimated like all that have no vector
        why = engine.error_for_caller(str(error))
        fresh, notes = [], (*notes, f"What was written last could not be embedded, so its place is estimated: {why}")
    ranking = _merged(dense, fresh)
    background = engine.embedding.background(serving)
    ranking = _merged(ranking, list(_estimated(query, serving, background, ranking, found.rankings)))
    rankings = [ranking if one is dense else one for one in found.rankings]
    return msgspec.structs.replace(found, rankings=rankings, notes=notes)


def _fresh(engine: Engine, query: LegQuery, serving: Model, dense: Ranking) -> Iterator[Candidate]:
    """The memories written last that are not embedded yet, as far as the caller may see them."""
    waiting = engine.store.jobs.newest(serving, MOST_EMBEDDED)
    embedder = engine.embedding.embedder_of(serving) if waiting else None
    if embedder is None or not embedder.local:  # an earlier embedder may be a hosted one
        return
    vector = engine.embedding.query_vector(serving, query.question.text)
    known = {candidate.id for candidate in dense.candidates}
    shown = engine.store.memories.shown(list(waiting), query.filter)
    left = MOST_PASSAGES
    for id, job in waiting.items():
        texts = _texts(job, embedder)
        left -= len(texts)
        if id in known or left < 0 or id not in shown:
            continue
        scores = engine.embedding.document_vectors(serving, texts, keep=True) @ vector
        best = int(np.argmax(scores))
        yield Candidate(id=id, score=float(scores[best]), passage=best)


def _texts(job: Job, embedder: Embedder) -> list[str]:
    """What is embedded of it. On a busy server every recall finds the same memories waiting."""
    name = (embedder.identity, job.title, job.content)
    texts = _cut_lately.get(name)
    if texts is None:
        texts = cut_job(job, embedder).texts
        _cut_lately.put(name, texts)
    return texts


def _estimated(
    query: LegQuery, serving: Model, background: Background, dense: Ranking, rankings: Sequence[Ranking]
) -> Iterator[Candidate]:
    """Hits of the other legs that have no vector."""
    seen = {candidate.id for candidate in dense.candidates}
    unseen = [
        candidate.id
        for ranking in rankings
        if ranking.leg != DENSE
        for candidate in ranking.candidates[:MOST_ESTIMATED]
        if candidate.id not in seen
    ]
    embedded = query.store.vectors.embedded(serving, unseen) if unseen else ()
    unknown = [id for id in dict.fromkeys(unseen) if id not in embedded]
    if not unknown:
        return
    store, bm25 = query.store, query.recipe.bm25
    wording = Wording(store, query.question, query.filter, bm25, IndexedTexts(store))
    memories = store.memories.get_many(unknown)
    wording.read(list(memories.values()))
    for id, memory in memories.items():
        words = wording.of(memory)
        likely = ESTIMATE_WITHOUT_WORDS + sum(weight * words[name] for name, weight in ESTIMATE.items())
        yield Candidate(id=id, score=background.cosine(likely), estimated=True)


def _merged(ranking: Ranking, more: Sequence[Candidate]) -> Ranking:
    if not more:
        return ranking
    candidates = sorted((*ranking.candidates, *more), key=lambda one: (-one.score, one.id))
    return msgspec.structs.replace(ranking, candidates=tuple(candidates))
