"""The bodies of the owner's verbs: statistics, checks, repairs, rebuilding, backup and keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from trivet.contract import (
    BackupRequest,
    BudgetsRequest,
    DoctorRequest,
    DrainRequest,
    EmbedRequest,
    MendRequest,
    RedactRequest,
    ReindexRequest,
    RotateKeysRequest,
    StatsRequest,
    TidyRequest,
)
from trivet.errors import Conflict
from trivet.memory.admin.doctor import REPAIRS
from trivet.memory.admin.doctor import doctor as doctor_of_doctor
from trivet.memory.admin.maintenance import embed_now, stats
from trivet.memory.admin.maintenance import reindex as rebuild
from trivet.memory.admin.maintenance import reindex as reindex_of_maintenance
from trivet.memory.engine import Engine
from trivet.types import Budget, Finding, Mended, Mending, Redacted, Rotated, Stats, Tidy

# Other modules are imported in functions, so that recalls do not load them.

# The rest of a large import is compared in the background.
COMPARED_PER_DRAIN = 64


def count(engine: Engine, request: StatsRequest) -> Stats:
    return stats(engine)


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


def budgets(engine: Engine, request: BudgetsRequest) -> tuple[Budget, ...]:
    from trivet.memory.admin.maintenance import budgets

    return budgets(engine) if engine.caller is None else budgets(engine)[1:]


def backup(engine: Engine, request: BackupRequest) -> None:
    engine.store.upkeep.backup(Path(request.target))


def doctor(engine: Engine, request: DoctorRequest) -> tuple[Finding, ...]:
    from trivet.memory.admin.doctor import doctor, system_findings, with_explanation

    if engine.caller is not None:
        from trivet.memory.admin.doctor import findings_for_admins

        return findings_for_admins(engine, whole=request.quick is False)
    return (
        *doctor(engine, whole=not request.quick),
        *(with_explanation(finding) for finding in system_findings(engine)),
    )


def reindex(engine: Engine, request: ReindexRequest) -> int:
    return rebuild(engine, request.lexical, request.vectors, request.graph, request.progress)


def drain(engine: Engine, request: DrainRequest) -> int:
    embedded = engine.worker.drain(request.progress)
    engine.worker.compare(COMPARED_PER_DRAIN)
    return embedded


def embed(engine: Engine, request: EmbedRequest) -> int:
    return embed_now(engine, request.progress)


REPAIR_ACTIONS: Mapping[Mending, Callable[[Engine], object]] = {
    "reindex lexical": lambda engine: reindex_of_maintenance(engine, True, False, False, None),
    "reindex vectors": lambda engine: reindex_of_maintenance(engine, False, True, False, None),
    "reindex graph": lambda engine: reindex_of_maintenance(engine, False, False, True, None),
    "embed": lambda engine: embed_now(engine, None),
}


def mend(engine: Engine, request: MendRequest) -> Mended:
    """Start a repair in the background.

    A repair that no finding asks for is refused: the machine is shared, and vectors may cost money.
    """
    doing = engine.worker.errand.doing
    if doing is None:
        _check_needed(engine, request.act)
        if engine.worker.errand.start(request.act, partial(_repair, engine, request.act)):
            return Mended(act=request.act, status="started")
        doing = engine.worker.errand.doing
    if doing == request.act:
        return Mended(act=request.act, status="under way already")
    raise Conflict(
        f"`{doing or 'another repair'}` is under way, and only one repair can run at a time. "
        "Try again when it is done."
    )


def _repair(engine: Engine, act: Mending) -> None:
    REPAIR_ACTIONS[act](engine)
    engine.store.audit.note("mended", None, act)


def _check_needed(engine: Engine, act: Mending) -> None:
    found = {finding.mends for finding in doctor_of_doctor(engine, whole=False) if not finding.ok}
    if act not in found:
        checks = "; ".join(check for check, mends in REPAIRS.items() if mends == act)
        raise Conflict(
            f"No check finds a problem that `{act}` would fix ({checks}). Nothing was started."
        )
