"""Whether the systems that the settings declare can be asked, found by asking them."""

from __future__ import annotations

import time

from trivet.memory.engine import Engine
from trivet.memory.federation.other_trivet import OtherTrivet
from trivet.search.systems.reply import SystemQuery
from trivet.search.systems.systems import SystemAnswer
from trivet.types import Finding

# A word that hardly any collection is without; that nothing is found is no fault.
TRIAL = SystemQuery("the", ("the",))


def findings(engine: Engine) -> tuple[Finding, ...]:
    declared = engine.systems.declared
    asked = {name: system for name, system in declared.items() if system.enabled}
    started = time.monotonic()
    futures = engine.systems.start(asked, TRIAL, lambda system: OtherTrivet(engine.settings, system))
    off = [Finding(check=f"federation {name}", ok=True, detail="off") for name in declared if name not in asked]
    return (*map(_finding, engine.systems.collect(futures, started)), *off)


def _finding(heard: SystemAnswer) -> Finding:
    check = f"federation {heard.name}"
    if heard.reply is None:
        remedy = f"Mend [federation.{heard.name}] in trivet.toml or the system, or set enabled = false there."
        said = f"; it says: {heard.quoted}" if heard.quoted else ""
        return Finding(check=check, ok=False, detail=f"{heard.health.reason}{said}", remedy=remedy)
    what = "places" if heard.reply.ranks_only else "scores"
    found = f"{len(heard.reply.hits)} hits with {what} in {heard.health.took_ms:.0f} ms"
    return Finding(check=check, ok=True, detail="; ".join((found, *heard.reply.notes)))
