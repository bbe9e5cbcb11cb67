"""Mending what the doctor found, for an admin who has no shell on the server's machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from trivet.contract import MendRequest
from trivet.errors import Conflict
from trivet.memory.doctor import MENDS, doctor
from trivet.memory.engine import Engine
from trivet.memory.maintenance import embed_now, reindex
from trivet.types import Mended, Mending

WORK: Mapping[Mending, Callable[[Engine], object]] = {
    "reindex lexical": lambda engine: reindex(engine, True, False, False, None),
    "reindex vectors": lambda engine: reindex(engine, False, True, False, None),
    "reindex graph": lambda engine: reindex(engine, False, False, True, None),
    "embed": lambda engine: embed_now(engine, None),
}


def mend(engine: Engine, request: MendRequest) -> Mended:
    """Begins it, unless it is under way. What no finding asks for is refused: a rebuild is work for a machine that
    others share, and new vectors may cost its owner money."""
    doing = engine.worker.errand.doing
    if doing is None:
        _check_needed(engine, request.act)
        if engine.worker.errand.start(request.act, partial(_mend, engine, request.act)):
            return Mended(act=request.act, status="started")
        doing = engine.worker.errand.doing
    if doing == request.act:
        return Mended(act=request.act, status="under way already")
    raise Conflict(
        f"`{doing or 'another act'}` is under way, and one act at a time is done. Ask again when it is done."
    )


def _mend(engine: Engine, act: Mending) -> None:
    WORK[act](engine)
    engine.store.audit.note("mended", None, act)


def _check_needed(engine: Engine, act: Mending) -> None:
    found = {finding.mends for finding in doctor(engine, whole=False) if not finding.ok}
    if act not in found:
        checks = "; ".join(check for check, mends in MENDS.items() if mends == act)
        raise Conflict(f"Nothing that `{act}` would mend is found amiss ({checks}). Nothing was begun.")
