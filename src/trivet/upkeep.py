"""Keeping a store in order: counts, checks, and rebuilding what is derived from the memories."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trivet.analyse import ANALYSER_VERSION
from trivet.engine import Engine
from trivet.errors import TrivetError
from trivet.remember import document_of
from trivet.store.base import Backlog, Document
from trivet.types import Finding, Memory, Progress, Stats


def stats(engine: Engine) -> Stats:
    counts = engine.store.memories.stats()
    serving = engine.embedding.serving()
    living = sum(count for state, count in counts.memories.items() if state != "deleted")
    backlog = Backlog(living - counts.sensitive if engine.embedding.enabled else 0, 0, None)
    if serving is not None:
        backlog = engine.store.jobs.backlog(serving)
    return msgspec.structs.replace(
        counts,
        not_embedded=backlog.waiting,
        failing_jobs=backlog.failing,
        last_error=backlog.last_error or engine.worker.last_error,
        embedder=serving.identity if serving else engine.embedding.identity,
    )


def doctor(engine: Engine) -> tuple[Finding, ...]:
    return (*engine.store.upkeep.findings(), _embedder(engine), _jobs(engine))


def reindex(engine: Engine, lexical: bool, vectors: bool, progress: Progress | None) -> int:
    if lexical:
        rebuild_lexical(engine)
    if not vectors:
        return 0
    engine.embedding.renew()
    engine.store.upkeep.rebuild_vectors()
    return engine.worker.drain(progress)


def embed_now(engine: Engine, progress: Progress | None) -> int:
    """Embeds everything that waits, also what is waiting out a failure."""
    engine.store.jobs.retry_now()
    return engine.worker.drain(progress)


def refresh_analyser(engine: Engine) -> None:
    """A store whose terms were made by another version of the analyser is searched wrongly: rebuild its index."""
    version = engine.store.upkeep.analyser_version()
    if version != ANALYSER_VERSION:
        if version or engine.store.memories.stats().revisions:
            rebuild_lexical(engine)
        engine.store.upkeep.set_analyser_version(ANALYSER_VERSION)


def rebuild_lexical(engine: Engine) -> int:
    return engine.store.upkeep.rebuild_lexical(_documents(engine))


def _documents(engine: Engine) -> Iterator[tuple[Memory, Document]]:
    for memory in engine.store.memories.everything():
        yield memory, document_of(memory)


def _embedder(engine: Engine) -> Finding:
    if not engine.embedding.enabled:
        return Finding(check="embedder", ok=True, detail="none: recall works by words alone")
    try:
        identity = engine.embedding.probe()
    except TrivetError as error:
        remedy = "Mend the embedder or choose another; recall goes on without new vectors, jobs wait."
        return Finding(check="embedder", ok=False, detail=f"{engine.embedding.identity}: {error}", remedy=remedy)
    serving = engine.embedding.serving()
    if serving is None or serving.identity != identity:
        detail = f"{identity} answers, and has vectors left to make; `trivet embed` makes them now"
        return Finding(check="embedder", ok=True, detail=detail)
    return Finding(check="embedder", ok=True, detail=f"{identity} answers")


def _jobs(engine: Engine) -> Finding:
    counts = stats(engine)
    if counts.failing_jobs:
        detail = f"{counts.failing_jobs} of {counts.not_embedded} waiting jobs have failed; last: {counts.last_error}"
        return Finding(check="jobs", ok=False, detail=detail, remedy="They are retried; `trivet embed` retries now.")
    return Finding(check="jobs", ok=True, detail=f"{counts.not_embedded} waiting")
