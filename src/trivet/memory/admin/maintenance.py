"""Statistics, budgets and sync status; rebuilding indexes; other verbs of the store's owner."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from trivet.analyse import ANALYSER_VERSION
from trivet.common.breaker import unavailable_endpoints
from trivet.contract import (
    BackupRequest,
    BudgetsRequest,
    DrainRequest,
    EmbedRequest,
    RedactRequest,
    ReindexRequest,
    RotateKeysRequest,
    StatsRequest,
    TidyRequest,
)
from trivet.graph.concepts import EXTRACTION_VERSION
from trivet.memory.engine import Engine
from trivet.store.records import Backlog, Document
from trivet.types import Budget, Memory, Progress, Redacted, Rotated, Stats, Tidy

# Memories to compare at once; the background compares the rest of a large import.
COMPARED_PER_DRAIN = 64
# Raise it only for another model that judges updates: every store then compares all its memories
# again, which takes hours for 100,000.
READER_VERSION = 2
MEGABYTE = 2**20


def count(engine: Engine, request: StatsRequest) -> Stats:
    return stats(engine)


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
            *unavailable_endpoints(with_systems=engine.caller is None),
        ),
    )


def reindex(engine: Engine, request: ReindexRequest) -> int:
    return rebuild(engine, request.lexical, request.vectors, request.graph, request.progress)


def rebuild(
    engine: Engine, lexical: bool, vectors: bool, graph: bool, progress: Progress | None
) -> int:
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
    return engine.worker.read_by_rules()


def embed_now(engine: Engine, progress: Progress | None) -> int:
    engine.store.jobs.retry_now()
    engine.store.graph.retry_now("rules")
    embedded = engine.worker.drain(progress)
    engine.worker.compare()
    engine.worker.read_triples()
    return embedded


def drain(engine: Engine, request: DrainRequest) -> int:
    embedded = engine.worker.drain(request.progress)
    engine.worker.compare(COMPARED_PER_DRAIN)
    return embedded


def embed(engine: Engine, request: EmbedRequest) -> int:
    return embed_now(engine, request.progress)


def backup(engine: Engine, request: BackupRequest) -> None:
    engine.store.upkeep.backup(Path(request.target))


# These functions import their modules, so that recalls do not load them.


def rotate_keys(engine: Engine, request: RotateKeysRequest) -> Rotated:
    from trivet.memory.sealed_secrets import rotate

    return rotate(engine, request.drop_old, request.drop)


def redact(engine: Engine, request: RedactRequest) -> Redacted:
    from trivet.memory.lifecycle import redact_all

    return redact_all(engine, request.progress)


def tidy(engine: Engine, request: TidyRequest) -> Tidy:
    from trivet.memory.admin.tidy import tidy, undo_last

    if request.undo:
        return undo_last(engine)
    return tidy(engine, frozenset(request.kinds), request.dry_run, request.unused_days)


def refresh(engine: Engine) -> None:
    """Rebuild what other versions of the analyzer, the extraction or the reader made.

    Rebuild the lexical index at once; the worker does the rest.
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
    from trivet.memory.remember import document_of  # not loaded by processes that only recall

    for memory in engine.store.all_memories.everything():
        yield memory, document_of(memory)


def budgets(engine: Engine, request: BudgetsRequest) -> tuple[Budget, ...]:
    """Return all budgets to the owner; a server's users do not see the process's memory."""
    return all_budgets(engine) if engine.caller is None else all_budgets(engine)[1:]


def all_budgets(engine: Engine) -> tuple[Budget, ...]:
    settings = engine.settings
    return (
        Budget(
            name="memory of this process",
            unit="MB",
            used=_megabytes(memory_in_use()),
            allowed=settings.resident_memory_mb,  # a resident process that exceeds it exits
            setting="resident_memory_mb",
        ),
        disk(engine),
        Budget(
            name="language model for the graph",
            unit="tokens today",
            used=engine.store.graph.spent(),
            allowed=settings.graph_llm_tokens_a_day if settings.graph_llm else 0,
            setting="graph_llm_tokens_a_day",
        ),
        Budget(
            name="language model for capture",
            unit="tokens today",
            used=engine.store.inbox.spent(),
            allowed=settings.capture_llm_tokens_a_day if settings.capture_llm else 0,
            setting="capture_llm_tokens_a_day",
        ),
    )


def disk(engine: Engine) -> Budget:
    used = engine.store.all_memories.stats().bytes or 0  # of the whole store, for every caller
    allowed = engine.settings.disk_budget_mb or None
    return Budget(
        name="store on disk",
        unit="MB",
        used=_megabytes(used),
        allowed=allowed,
        setting="disk_budget_mb",
    )


def memory_in_use() -> int:
    """Return this process's physical memory in bytes, or its peak without /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        import resource  # not everywhere

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def _megabytes(count: int) -> float:
    return round(count / MEGABYTE, 1)


class SyncStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The sync status of a store that follows a server.

    `contact` is the server's last answer; if `hidden`, others' memories are hidden until it
    answers.
    """

    server: str
    user: str
    contact: str | None
    waiting: int
    oldest: str | None
    refused: int
    conflicts: int
    hidden: bool

    @property
    def summary(self) -> str:
        contact = f"last contact {self.contact}" if self.contact else "the server was never reached"
        oldest = f", the oldest since {self.oldest}" if self.oldest else ""
        hidden = "; what others shared is hidden until the next contact" if self.hidden else ""
        questions = f"{self.refused} refused, {self.conflicts} conflicts"
        return f"{contact}; {self.waiting} operations wait{oldest}; {questions}{hidden}"


def following(engine: Engine) -> SyncStatus | None:
    if not engine.follows:
        return None
    connection = engine.store.feed.database.read()
    [row] = connection.execute(connection.sql("replica")["standing"]).fetchall()
    return SyncStatus(
        server=row["server"],
        user=row["user"],
        contact=row["contact"] or None,
        waiting=row["waiting"],
        oldest=row["oldest"],
        refused=row["refused"],
        conflicts=row["conflicts"],
        hidden=bool(row["hidden"]),
    )
