"""Findings of the health checks, their importance and repairs, and what a server's admin sees.

A server's admin sees only checks of their tenant that are listed here. Paths, addresses and disk
space are for the machine's owner, who runs `trivet doctor` there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from trivet.contract import DoctorRequest, MendRequest
from trivet.errors import Conflict
from trivet.memory.admin.checks import ASK_THE_OWNER, leg_finding, run_checks, system_findings
from trivet.memory.admin.maintenance import embed_now, rebuild
from trivet.memory.engine import Engine
from trivet.types import Finding, Mended, Mending

WHY_SYSTEMS_MATTER = "Its hits are missing from federated recalls."
WHY_IT_MATTERS: Mapping[str, str] = {
    "database file": "Memories may be lost, or answers may be wrong.",
    "rows that can be read": "What cannot be read cannot be recalled or exported.",
    "index file": "New processes load slower; answers are the same.",
    "file in its place": "What this process writes would be lost.",
    "lexical index": "Recall by words fails or misses memories.",
    "memories missing from the lexical index": "Recall does not find them by their words.",
    "entries of gone memories in the lexical index": "Forgotten memories take up space.",
    "vectors of deleted or sensitive memories": "They should have no vectors.",
    "memories with neither vector nor job": "Recall never finds them by their meaning.",
    "concepts of deleted or sensitive memories": "Forgotten or sensitive texts are in the graph.",
    "concepts that nothing mentions": "They take up space and lead nowhere.",
    "memories neither in the graph nor waiting for it": "Recall does not reach them by concepts.",
    "memories whose superseded state is off": "Recall shows outdated or hides current memories.",
    "memories without their revision": "They have no history, and no earlier state can return.",
    "audit record": "It no longer proves who did what.",
    "purged memories": "Their words can still be found in the database files.",
    "index of many vectors": "Searches by meaning in this tenant are slow.",
    "standbys": "Only the primary answers recalls.",
    "embedder": "New memories may be found only by their words.",
    "jobs": "These memories are found only by their words.",
    "reading for the graph": "The graph leg does not lead to these memories.",
    "language model for the graph": "New relations between concepts are not found.",
    "rights of the file": "Other users of this machine can read your memories.",
    "room on disk": "Soon nothing can be stored.",
    "budgets": "Work beyond the budget is paused.",
    "keys of secrets": "These secrets can no longer be read.",
    "folders taken in": "Changes in them do not reach the memory.",
    "capture": "Conversations are read only by rules.",
    "sync": "Changes reach the other side late, or wait for your decision.",
    "legs": "Recall finds less than it could.",
    "usage counts": "Some showings were not counted; recall itself is not affected.",
}
# Checks that a verb can repair. Only the owner decides to change the embedder.
REPAIRS: Mapping[str, Mending] = {
    "lexical index": "reindex lexical",
    "memories missing from the lexical index": "reindex lexical",
    "entries of gone memories in the lexical index": "reindex lexical",
    "vectors of deleted or sensitive memories": "reindex vectors",
    "memories with neither vector nor job": "reindex vectors",
    "concepts of deleted or sensitive memories": "reindex graph",
    "concepts that nothing mentions": "reindex graph",
    "memories neither in the graph nor waiting for it": "reindex graph",
    "jobs": "embed",
}


def doctor(engine: Engine, request: DoctorRequest) -> tuple[Finding, ...]:
    if engine.caller is not None:
        return findings_for_admins(engine, whole=request.quick is False)
    found = (*run_checks(engine, whole=not request.quick), *system_findings(engine))
    return tuple(map(with_explanation, found))


def with_explanation(finding: Finding) -> Finding:
    if finding.ok:
        return finding
    matters = (
        WHY_SYSTEMS_MATTER
        if finding.check.startswith("federation ")
        else WHY_IT_MATTERS.get(finding.check)
    )
    return msgspec.structs.replace(finding, matters=matters, mends=REPAIRS.get(finding.check))


# Checks whose details are only counts and fixed sentences.
SHOWN_IN_FULL = frozenset(
    (
        "memories missing from the lexical index",
        "entries of gone memories in the lexical index",
        "vectors of deleted or sensitive memories",
        "memories with neither vector nor job",
        "concepts of deleted or sensitive memories",
        "concepts that nothing mentions",
        "memories neither in the graph nor waiting for it",
        "memories whose superseded state is off",
        "memories without their revision",
        "audit record",
        "jobs",
        "budgets",
        "inbox",
        "sync",
    )
)
# Details may quote paths or other programs, so admins see a fixed text: (passed, failed).
SHOWN_IN_BRIEF: Mapping[str, tuple[str, str]] = {
    "database file": ("sound", "damaged"),
    "rows that can be read": ("all", "some cannot be read"),
    "file in its place": ("yes", "it was moved or replaced"),
    "lexical index": ("sound", "damaged"),
    "purged memories": (
        "gone from the files",
        "not yet gone from the files; retried automatically",
    ),
    "reading for the graph": ("nothing fails", "some memories could not be read"),
    "usage counts": ("written down", "some could not be written"),
    "embedder": (
        "answers, or none is configured",
        "it does not answer, or a different one made the vectors",
    ),
    "language model for the graph": ("answers, or none is configured", "it does not answer"),
    "keys of secrets": ("all there", "a key is missing"),
}


def findings_for_admins(engine: Engine, whole: bool) -> tuple[Finding, ...]:
    explained = map(with_explanation, run_checks(engine, whole))
    found = tuple(told for finding in explained if (told := _for_admin(finding)) is not None)
    if any(not finding.ok and finding.check == "database file" for finding in found):
        return found
    return (*found, with_explanation(leg_finding(engine)))


def _for_admin(finding: Finding) -> Finding | None:
    if finding.check in SHOWN_IN_FULL:
        return finding
    if finding.check not in SHOWN_IN_BRIEF:
        return None
    well, ill = SHOWN_IN_BRIEF[finding.check]
    if finding.ok:
        return msgspec.structs.replace(finding, detail=well)
    remedy = finding.remedy if finding.mends else ASK_THE_OWNER
    return msgspec.structs.replace(finding, detail=ill, remedy=remedy)


REPAIR_ACTIONS: Mapping[Mending, Callable[[Engine], object]] = {
    "reindex lexical": lambda engine: rebuild(engine, True, False, False, None),
    "reindex vectors": lambda engine: rebuild(engine, False, True, False, None),
    "reindex graph": lambda engine: rebuild(engine, False, False, True, None),
    "embed": lambda engine: embed_now(engine, None),
}


def mend(engine: Engine, request: MendRequest) -> Mended:
    """Start a repair in the background.

    Refuse one that no finding asks for.
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
    failed = [finding.check for finding in run_checks(engine, whole=False) if not finding.ok]
    if act not in map(REPAIRS.get, failed):
        checks = "; ".join(check for check, mends in REPAIRS.items() if mends == act)
        raise Conflict(
            f"No check finds a problem that `{act}` would fix ({checks}). Nothing was started."
        )
