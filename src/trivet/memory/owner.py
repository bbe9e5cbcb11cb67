"""What the owner of a store asks of it: counts, checks, rebuilding, backup, keys. Each body is a verb's."""

from __future__ import annotations

from pathlib import Path

from trivet.contract import (
    BackupRequest,
    BudgetsRequest,
    DoctorRequest,
    DrainRequest,
    EmbedRequest,
    RedactRequest,
    ReindexRequest,
    RotateKeysRequest,
    StatsRequest,
    TidyRequest,
)
from trivet.memory.engine import Engine
from trivet.memory.maintenance import embed_now, stats
from trivet.memory.maintenance import reindex as rebuild
from trivet.types import Budget, Finding, Redacted, Rotated, Stats, Tidy

# The others are imported by the verb that needs them: a recall's process loads none of it.

# A caller waits for the latest alone; the rest of a large import is compared in the background.
COMPARED_AT_A_DRAIN = 64


def count(engine: Engine, request: StatsRequest) -> Stats:
    return stats(engine)


def rotate_keys(engine: Engine, request: RotateKeysRequest) -> Rotated:
    from trivet.memory.secrets import rotate

    return rotate(engine, request.drop_old, request.drop)


def redact(engine: Engine, request: RedactRequest) -> Redacted:
    from trivet.memory.redact import redact_all

    return redact_all(engine, request.progress)


def tidy(engine: Engine, request: TidyRequest) -> Tidy:
    from trivet.memory.tidy import tidy, undo_last

    if request.undo:
        return undo_last(engine)
    return tidy(engine, frozenset(request.kinds), request.dry_run, request.unused_days)


def budgets(engine: Engine, request: BudgetsRequest) -> tuple[Budget, ...]:
    """A user of a server is told of their tenant's; the memory of its process is the machine's."""
    from trivet.memory.budgets import budgets

    return budgets(engine) if engine.caller is None else budgets(engine)[1:]


def backup(engine: Engine, request: BackupRequest) -> None:
    engine.store.upkeep.backup(Path(request.target))


def doctor(engine: Engine, request: DoctorRequest) -> tuple[Finding, ...]:
    from trivet.memory.doctor import doctor, explained
    from trivet.memory.federation.doctor import findings

    if engine.caller is not None:
        from trivet.memory.doctor_for_admins import findings_for_admins

        return findings_for_admins(engine, whole=request.quick is False)
    return (*doctor(engine, whole=not request.quick), *(explained(finding) for finding in findings(engine)))


def reindex(engine: Engine, request: ReindexRequest) -> int:
    return rebuild(engine, request.lexical, request.vectors, request.graph, request.progress)


def drain(engine: Engine, request: DrainRequest) -> int:
    embedded = engine.worker.drain(request.progress)
    engine.worker.compare(COMPARED_AT_A_DRAIN)
    return embedded


def embed(engine: Engine, request: EmbedRequest) -> int:
    return embed_now(engine, request.progress)
