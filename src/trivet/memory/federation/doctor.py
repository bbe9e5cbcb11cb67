"""Whether the members that the settings declare can be asked, found by asking them."""

from __future__ import annotations

import time

from trivet.memory.engine import Engine
from trivet.memory.federation.trivet_member import OtherTrivet
from trivet.search.systems.reported_hits import Asked
from trivet.search.systems.systems import Heard
from trivet.types import Finding

# A word that hardly any collection is without; that nothing is found is no fault.
TRIAL = Asked("the", ("the",))


def findings(engine: Engine) -> tuple[Finding, ...]:
    declared = engine.members.declared
    asked = {name: member for name, member in declared.items() if member.enabled}
    started = time.monotonic()
    futures = engine.members.start(asked, TRIAL, lambda member: OtherTrivet(engine.settings, member))
    off = [Finding(check=f"federation {name}", ok=True, detail="off") for name in declared if name not in asked]
    return (*map(_finding, engine.members.collect(futures, started)), *off)


def _finding(heard: Heard) -> Finding:
    check = f"federation {heard.name}"
    if heard.reply is None:
        remedy = f"Mend [federation.{heard.name}] in trivet.toml or the system, or set enabled = false there."
        said = f"; it says: {heard.quoted}" if heard.quoted else ""
        return Finding(check=check, ok=False, detail=f"{heard.health.reason}{said}", remedy=remedy)
    what = "places" if heard.reply.ranks_only else "scores"
    found = f"{len(heard.reply.hits)} hits with {what} in {heard.health.took_ms:.0f} ms"
    return Finding(check=check, ok=True, detail="; ".join((found, *heard.reply.notes)))
