"""What `doctor` tells an admin of a server: of their own tenant, and nothing of the machine that it lies on.

An admin mends their tenant without being the owner of the machine. Paths, addresses of models and other systems, rights
of files, room on the disk and the roles of the database are the owner's: `trivet doctor` on the machine tells them.
A check that is not named here is left out, so that a new one is hidden until somebody has thought of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trivet.contract import Recall
from trivet.memory.doctor import MATTERS, doctor
from trivet.memory.engine import Engine
from trivet.memory.recall import follow
from trivet.types import Finding

# Their details are counts and sentences of our own.
TOLD = frozenset(
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
# Their details may quote a path, an address or what another program said: so what is well, and what is not.
TOLD_IN_SHORT: Mapping[str, tuple[str, str]] = {
    "database file": ("sound", "damaged"),
    "rows that can be read": ("all", "some cannot be read"),
    "file in its place": ("yes", "it was moved or replaced"),
    "lexical index": ("sound", "damaged"),
    "purged memories": ("gone from the files", "not yet gone from the files; tried again by itself"),
    "reading for the graph": ("nothing fails", "some memories could not be read"),
    "usage counts": ("written down", "some could not be written"),
    "embedder": ("answers, or none is configured", "it does not answer, or is another than made the vectors"),
    "language model for the graph": ("answers, or none is configured", "it does not answer"),
    "keys of secrets": ("all there", "a key is missing"),
}
ASK_THE_OWNER = "Ask whoever has the server's machine: `trivet doctor` there tells more."
TRIAL = Recall(query="health", limit=1, rerank="off", expand=False)


def findings_for_admins(engine: Engine, whole: bool) -> tuple[Finding, ...]:
    found = [told for finding in doctor(engine, whole) if (told := _told(finding)) is not None]
    if any(not finding.ok and finding.check == "database file" for finding in found):
        return tuple(found)
    return (*found, _legs(engine))


def _told(finding: Finding) -> Finding | None:
    if finding.check in TOLD:
        return finding
    if finding.check not in TOLD_IN_SHORT:
        return None
    well, ill = TOLD_IN_SHORT[finding.check]
    if finding.ok:
        return msgspec.structs.replace(finding, detail=well)
    remedy = finding.remedy if finding.mends else ASK_THE_OWNER
    return msgspec.structs.replace(finding, detail=ill, remedy=remedy)


def _legs(engine: Engine) -> Finding:
    """Whether each leg answers, found by asking them. Nothing is counted as shown."""
    health = follow(engine, TRIAL)[0].health
    down = [f"{leg.leg}: {leg.reason or 'no answer'}" for leg in health.legs if not leg.answered]
    detail = "; ".join(down) or "all answer: " + ", ".join(leg.leg for leg in health.legs)
    remedy = "The others go on answering. " + ASK_THE_OWNER if down else None
    return Finding(check="legs", ok=not down, detail=detail, remedy=remedy, matters=MATTERS["legs"] if down else None)
