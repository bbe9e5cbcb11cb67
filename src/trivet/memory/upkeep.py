"""Keeping a store in order: counts, checks, and rebuilding what is derived from the memories."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import msgspec

from trivet.analyse import ANALYSER_VERSION
from trivet.errors import TrivetError
from trivet.graph.extract import EXTRACTION_VERSION
from trivet.memory.background.extraction import Extraction
from trivet.memory.engine import Engine
from trivet.memory.remember import document_of
from trivet.store.records import Backlog, Document
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
        not_in_graph=engine.store.graph.backlog("rules").waiting,
        embedder=serving.identity if serving else engine.embedding.identity,
    )


def engine_findings(engine: Engine) -> tuple[Finding, ...]:
    """What the store and those who work for it say of themselves."""
    return (
        *engine.store.upkeep.findings(),
        _embedder(engine),
        _jobs(engine),
        _readings(engine),
        _language_model(engine),
    )


def reindex(engine: Engine, lexical: bool, vectors: bool, graph: bool, progress: Progress | None) -> int:
    if lexical:
        rebuild_lexical(engine)
    if graph:
        engine.store.upkeep.rebuild_graph()
        read_now(engine)
    if not vectors:
        return 0
    engine.embedding.renew()
    engine.store.upkeep.rebuild_vectors()
    return engine.worker.drain(progress)


def read_now(engine: Engine) -> int:
    """Reads everything that waits for the graph. It needs no embedder, so it is never a wait for a server."""
    return Extraction(engine.store).drain(threading.Event())


def embed_now(engine: Engine, progress: Progress | None) -> int:
    """Embeds everything that waits, also what is waiting out a failure; then the graph's language model reads."""
    engine.store.jobs.retry_now()
    engine.store.graph.retry_now("rules")
    embedded = engine.worker.drain(progress)
    engine.worker.read_triples()
    return embedded


def refresh(engine: Engine) -> None:
    """What another version of the analyser or of the extraction made would answer wrongly: it is made anew.

    The lexical index at once, since every search needs it; the graph by the worker.
    """
    if engine.store.upkeep.version("analyser") != ANALYSER_VERSION:
        if engine.store.memories.stats().revisions:
            rebuild_lexical(engine)
        engine.store.upkeep.set_version("analyser", ANALYSER_VERSION)
    if engine.store.upkeep.version("extraction") != EXTRACTION_VERSION:
        engine.store.upkeep.rebuild_graph()
        engine.store.upkeep.set_version("extraction", EXTRACTION_VERSION)


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


def _readings(engine: Engine) -> Finding:
    check, backlog = "reading for the graph", engine.store.graph.backlog("rules")
    if backlog.failing:
        detail = (
            f"{backlog.failing} of {backlog.waiting} waiting memories could not be read; last: {backlog.last_error}"
        )
        return Finding(
            check=check, ok=False, detail=detail, remedy="Please report it; they are found by the other legs."
        )
    return Finding(check=check, ok=True, detail=f"{backlog.waiting} waiting")


def _language_model(engine: Engine) -> Finding:
    check, triples = "language model for the graph", engine.worker.triples
    if triples is None:
        return Finding(check=check, ok=True, detail="none: concepts are found by rules alone")
    backlog = engine.store.graph.backlog("triples")
    used = f"{triples.budget.used()} of {triples.budget.tokens_a_day} tokens used today"
    detail = f"{triples.chat.model} at {triples.chat.host}: {backlog.waiting} memories wait, {used}"
    error = triples.probe() or (backlog.last_error if backlog.failing else None)
    if error:
        remedy = "Mend the endpoint or the setting graph_llm; the rules keep the graph meanwhile, memories wait."
        return Finding(check=check, ok=False, detail=f"{detail}; last error: {error}", remedy=remedy)
    return Finding(check=check, ok=True, detail=detail)
