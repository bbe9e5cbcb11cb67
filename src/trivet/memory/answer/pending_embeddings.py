"""Dense retrieval for memories without a stored vector.

Recall embeds the newest ones on the spot and estimates the score of others from the words in
common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trivet.common.bounded_cache import MIB, BoundedCache
from trivet.errors import EmbedderError
from trivet.memory.answer.decision import Retrieved
from trivet.memory.engine import Engine
from trivet.memory.passages import split_job
from trivet.models.embed.base import SimilarityBaseline
from trivet.search.legs.dense import NAME as DENSE
from trivet.search.legs.leg import LegQuery
from trivet.search.relevance_features import IndexedTexts, TextMatch
from trivet.store.records import EmbeddingJob, Model
from trivet.types import Candidate, Ranking

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder

# Memories embedded while the caller waits: a few milliseconds each with the bundled model.
MAX_EMBEDDED = 4
MAX_EMBEDDED_PASSAGES = 6
PASSAGE_CACHE_BYTES = 2 * MIB
# Scores are estimated for this many hits of each leg.
MAX_ESTIMATED = 10
# Nearness by words in common: a least-squares fit over lexical hits of training/lives.
SIMILARITY_WEIGHTS = {"coverage": 0.25, "pairs": 0.2}
SIMILARITY_WITHOUT_WORDS = 0.2

_recent_passages: BoundedCache[tuple[str, str | None, str], list[str]] = BoundedCache(
    PASSAGE_CACHE_BYTES
)


def add_pending_embeddings(engine: Engine, query: LegQuery, found: Retrieved) -> Retrieved:
    dense = next((ranking for ranking in found.rankings if ranking.leg == DENSE), None)
    serving = engine.embedding.serving()
    if dense is None or serving is None:
        return found
    notes = found.notes
    try:
        fresh = list(_newest_pending(engine, query, serving, dense))
    except EmbedderError as error:  # the scores are estimated instead
        why = engine.error_for_caller(str(error))
        fresh, notes = (
            [],
            (
                *notes,
                f"The newest memories could not be embedded, so their ranks are estimated: {why}",
            ),
        )
    ranking = _with_candidates(dense, fresh)
    background = engine.embedding.background(serving)
    ranking = _with_candidates(
        ranking, list(_estimated_candidates(query, serving, background, ranking, found.rankings))
    )
    rankings = [ranking if one is dense else one for one in found.rankings]
    return msgspec.structs.replace(found, rankings=rankings, notes=notes)


def _newest_pending(
    engine: Engine, query: LegQuery, serving: Model, dense: Ranking
) -> Iterator[Candidate]:
    waiting = engine.store.jobs.newest(serving, MAX_EMBEDDED)
    embedder = engine.embedding.embedder_of(serving) if waiting else None
    if embedder is None or not embedder.local:  # an earlier embedder may be hosted
        return
    vector = engine.embedding.query_vector(serving, query.question.text)
    known = {candidate.id for candidate in dense.candidates}
    shown = engine.store.memories.shown(list(waiting), query.filter)
    left = MAX_EMBEDDED_PASSAGES
    for id, job in waiting.items():
        texts = _passage_texts(job, embedder)
        left -= len(texts)
        if id in known or left < 0 or id not in shown:
            continue
        scores = engine.embedding.document_vectors(serving, texts, keep=True) @ vector
        best = int(np.argmax(scores))
        yield Candidate(id=id, score=float(scores[best]), passage=best)


def _passage_texts(job: EmbeddingJob, embedder: Embedder) -> list[str]:
    # On a busy server every recall finds the same memories waiting.
    name = (embedder.identity, job.title, job.content)
    texts = _recent_passages.get(name)
    if texts is None:
        texts = split_job(job, embedder).texts
        _recent_passages.put(name, texts)
    return texts


def _estimated_candidates(
    query: LegQuery,
    serving: Model,
    background: SimilarityBaseline,
    dense: Ranking,
    rankings: Sequence[Ranking],
) -> Iterator[Candidate]:
    seen = {candidate.id for candidate in dense.candidates}
    unseen = [
        candidate.id
        for ranking in rankings
        if ranking.leg != DENSE
        for candidate in ranking.candidates[:MAX_ESTIMATED]
        if candidate.id not in seen
    ]
    embedded = query.store.vectors.embedded(serving, unseen) if unseen else ()
    unknown = [id for id in dict.fromkeys(unseen) if id not in embedded]
    if not unknown:
        return
    store, bm25 = query.store, query.recipe.bm25
    wording = TextMatch(store, query.question, query.filter, bm25, IndexedTexts(store))
    memories = store.memories.get_many(unknown)
    wording.read(list(memories.values()))
    for id, memory in memories.items():
        words = wording.of(memory)
        likely = SIMILARITY_WITHOUT_WORDS + sum(
            weight * words[name] for name, weight in SIMILARITY_WEIGHTS.items()
        )
        yield Candidate(id=id, score=background.cosine(likely), estimated=True)


def _with_candidates(ranking: Ranking, more: Sequence[Candidate]) -> Ranking:
    if not more:
        return ranking
    candidates = sorted((*ranking.candidates, *more), key=lambda one: (-one.score, one.id))
    return msgspec.structs.replace(ranking, candidates=tuple(candidates))
