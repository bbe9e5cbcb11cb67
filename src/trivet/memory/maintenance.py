"""Counts of a store, and rebuilding what is derived from its memories: lexical index, graph and vectors."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trivet.analyse import ANALYSER_VERSION
from trivet.breaker import silent_endpoints
from trivet.graph.mentions import EXTRACTION_VERSION
from trivet.memory.changes.reader import READER_VERSION
from trivet.memory.engine import Engine
from trivet.store.records import Backlog, Document
from trivet.types import Memory, Progress, Stats


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
        last_error=engine.error_for_caller(backlog.last_error or engine.worker.last_error),
        not_in_graph=engine.store.graph.backlog("rules").waiting,
        read_in_part=engine.worker.read_in_part,
        mending=engine.worker.errand.doing,
        embedder=serving.identity if serving else engine.embedding.identity,
        notes=(
            *filter(None, (engine.embedding.difference(),)),
            *silent_endpoints(with_systems=engine.caller is None),
        ),
    )


def reindex(engine: Engine, lexical: bool, vectors: bool, graph: bool, progress: Progress | None) -> int:
    if lexical:
        rebuild_lexical(engine)
    if graph:
        engine.store.upkeep.rebuild_graph()
        read_now(engine)
    if not vectors:
        return 0
    engine.store.upkeep.rebuild_vectors(engine.embedding.move())
    return engine.worker.drain(progress)


def read_now(engine: Engine) -> int:
    """Reads everything that waits for the graph by the rules, which never wait for a server."""
    return engine.worker.read_by_rules()


def embed_now(engine: Engine, progress: Progress | None) -> int:
    """Embeds and compares everything that waits, failed jobs too, at once; then the graph's language model reads."""
    engine.store.jobs.retry_now()
    engine.store.graph.retry_now("rules")
    embedded = engine.worker.drain(progress)
    engine.worker.compare()
    engine.worker.read_triples()
    return embedded


def refresh(engine: Engine) -> None:
    """Rebuilds what another version of the analyser, the extraction or the reader of changes made: it would be wrong.

    The lexical index at once, since every search needs it; the worker rebuilds the graph.
    """
    if engine.store.upkeep.version("analyser") != ANALYSER_VERSION:
        if engine.store.memories.stats().revisions:
            rebuild_lexical(engine)
        engine.store.upkeep.set_version("analyser", ANALYSER_VERSION)
    if engine.store.upkeep.version("extraction") != EXTRACTION_VERSION:
        engine.store.upkeep.rebuild_graph()
        engine.store.upkeep.set_version("extraction", EXTRACTION_VERSION)
    if engine.store.upkeep.version("changes") != READER_VERSION:
        engine.store.likely_updates.compare_all()
        engine.store.upkeep.set_version("changes", READER_VERSION)


def rebuild_lexical(engine: Engine) -> int:
    return engine.store.upkeep.rebuild_lexical(_documents(engine))


def _documents(engine: Engine) -> Iterator[tuple[Memory, Document]]:
    from trivet.memory.remember import document_of  # a process that only recalls never loads it

    for memory in engine.store.all_memories.everything():
        yield memory, document_of(memory)
