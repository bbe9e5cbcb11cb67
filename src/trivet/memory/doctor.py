"""All checks of a store and its surroundings. A problem says why it matters and which command mends it."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trivet.errors import SecretError, TrivetError
from trivet.memory.budgets import budgets
from trivet.memory.engine import Engine
from trivet.memory.following import following
from trivet.memory.maintenance import stats
from trivet.memory.transcript_progress import last_problem
from trivet.secrets.seal import unseal
from trivet.settings.address import is_file
from trivet.types import Finding, Mending

# With less free disk space a write, a backup or a rebuild may fail half way.
LEAST_FREE_MB = 200
MEGABYTE = 2**20

OTHER_SYSTEM = "Its hits are missing from federated recalls."
# Sealed secrets that are tried, and named if they do not open.
MOST_SECRETS = 100_000
SHOWN_SECRETS = 3

DAMAGE = ("database file", "rows that can be read")
MATTERS: Mapping[str, str] = {
    "database file": "Memories may be lost or wrong answers given.",
    "rows that can be read": "What cannot be read cannot be recalled or exported.",
    "index file": "New processes load slower; answers are the same.",
    "file in its place": "What this process writes would be lost.",
    "lexical index": "Recall by words fails or misses memories.",
    "memories missing from the lexical index": "Recall does not find them by their words.",
    "entries of gone memories in the lexical index": "What was forgotten takes room and may count in scores.",
    "vectors of deleted or sensitive memories": "What was forgotten or is sensitive should have no vectors.",
    "memories with neither vector nor job": "Recall does not find them by their meaning, and nothing will change that.",
    "concepts of deleted or sensitive memories": "The graph leads by way of what was forgotten or is sensitive.",
    "concepts that nothing mentions": "They take room and lead nowhere.",
    "memories neither in the graph nor waiting for it": "Recall does not reach them by way of what they mention.",
    "memories whose superseded state is off": "Recall shows an outdated memory, or hides one that is not.",
    "memories without their revision": "Their history cannot be shown, nor an earlier state restored.",
    "audit record": "It does not prove any longer who did what.",
    "purged memories": "Who can read the files of the database can still find words of what was purged.",
    "index of many vectors": "Searches by meaning in this tenant are slow.",
    "standbys": "Recalls are answered by the primary alone.",
    "embedder": "New memories may be found by their words alone.",
    "jobs": "These memories are found by their words alone.",
    "reading for the graph": "The graph leg does not lead to these memories.",
    "language model for the graph": "New statements on how concepts are connected are not found.",
    "rights of the file": "Other users of this machine can read your memories.",
    "room on disk": "Soon nothing can be stored.",
    "budgets": "Work that costs more than you allowed rests.",
    "keys of secrets": "These secrets cannot be read any longer.",
    "folders taken in": "What changes in them does not reach the memory.",
    "capture": "Conversations are read by rules alone.",
    "sync": "What you and others write reaches the other side late, or waits for your decision.",
    "legs": "Recall finds less than it could.",
    "usage counts": "Some showings were not counted; recall itself is not touched.",
}
# Where an act of the API mends it. Not a difference of embedders: to move a store to another one is its owner's choice.
MENDS: Mapping[str, Mending] = {
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


def doctor(engine: Engine, whole: bool = True) -> tuple[Finding, ...]:
    """With `whole` every row of the store is read. Of a damaged store nothing else is asked."""
    stored = engine.store.upkeep.findings(whole)
    if any(not finding.ok and finding.check in DAMAGE for finding in stored):
        return tuple(explained(finding) for finding in (*stored, *_of_the_file(engine)))
    found = (
        *stored,
        _embedder(engine),
        _jobs(engine),
        _readings(engine),
        _language_model(engine),
        *_of_the_file(engine),
        _budgets(engine),
        _keys(engine, whole),
        _folders(engine),
        _inbox(engine),
        _capture(engine),
        _usage(engine),
        *_sync(engine),
    )
    return tuple(explained(finding) for finding in found)


def explained(finding: Finding) -> Finding:
    if finding.ok:
        return finding
    matters = OTHER_SYSTEM if finding.check.startswith("federation ") else MATTERS.get(finding.check)
    return msgspec.structs.replace(finding, matters=matters, mends=MENDS.get(finding.check))


def _sync(engine: Engine) -> tuple[Finding, ...]:
    """Of a store that follows a server: how long ago it was reached, what waits, what needs a decision."""
    stands = following(engine)
    if stands is None:
        return ()
    if stands.refused or stands.conflicts:
        remedy = "`trivet sync refused` and `trivet sync conflicts` show them; `trivet sync resolve` decides."
        return (Finding(check="sync", ok=False, detail=stands.told, remedy=remedy),)
    return (Finding(check="sync", ok=True, detail=stands.told),)


def _embedder(engine: Engine) -> Finding:
    if not engine.embedding.enabled:
        return Finding(check="embedder", ok=True, detail="none: recall works by words alone")
    try:
        identity = engine.embedding.probe()
    except TrivetError as error:
        remedy = "Mend the embedder or choose another; recall goes on without new vectors, jobs wait."
        asked = f"asked at {endpoint}: " if (endpoint := engine.embedding.endpoint) else ""
        return Finding(check="embedder", ok=False, detail=f"{asked}{error}", remedy=remedy)
    if (difference := engine.embedding.difference()) is not None:
        remedy = "Set embedder to the store's, or run `trivet reindex --vectors` to move the store to yours."
        return Finding(check="embedder", ok=False, detail=difference.partition(". ")[0], remedy=remedy)
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
    partly = engine.worker.read_in_part
    detail = f"{backlog.waiting} waiting" + (f"; {partly} took too long and were read in part" if partly else "")
    return Finding(check=check, ok=True, detail=detail)


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


def _of_the_file(engine: Engine) -> tuple[Finding, ...]:
    if not is_file(engine.settings.path):
        return ()
    file = Path(engine.settings.path).expanduser()
    if not file.exists():
        return ()  # the store's own findings report it
    open_to_others = stat.S_IMODE(file.stat().st_mode) & 0o077
    free = shutil.disk_usage(file.parent).free // MEGABYTE
    return (
        Finding(
            check="rights of the file",
            ok=not open_to_others,
            detail="others may read or write it" if open_to_others else "yours alone",
            remedy=f"Run `chmod 600 {file}`." if open_to_others else None,
        ),
        Finding(
            check="room on disk",
            ok=free >= LEAST_FREE_MB,
            detail=f"{free:,} MB free",
            remedy=None if free >= LEAST_FREE_MB else "Make room; `trivet tidy --dry-run` shows what could go.",
        ),
    )


def _budgets(engine: Engine) -> Finding:
    # Not of memory: that budget is for the resident process, and this is seldom it.
    over = [one for one in budgets(engine) if one.exceeded and one.setting != "resident_memory_mb"]
    detail = "; ".join(f"{one.name}: {one.used:g} of {one.allowed:g} {one.unit}" for one in over)
    remedy = f"Allow more ({', '.join(one.setting for one in over)}), or run `trivet tidy --dry-run`." if over else None
    return Finding(check="budgets", ok=not over, detail=detail or "within them", remedy=remedy)


def _keys(engine: Engine, whole: bool) -> Finding:
    """Tries every key that sealed something, and with `whole` every secret."""
    ids = engine.store.secrets.keys_in_use()
    gone: list[str] = []
    for id in ids:
        try:
            engine.guard.keys.get(id, note=False)
        except SecretError as error:
            gone.append(str(error))
    if whole and not gone:
        gone = _unopened(engine)
    remedy = "Bring the key back from where it was kept; `trivet config` shows where keys are looked for."
    return Finding(
        check="keys of secrets",
        ok=not gone,
        detail="; ".join(gone) if gone else f"{len(ids)} in use, all there",
        remedy=remedy if gone else None,
    )


def _unopened(engine: Engine) -> list[str]:
    """What each sealed secret that does not open says of it; nothing of what it holds."""
    told: list[str] = []
    for id, sealed in engine.store.secrets.not_under("", MOST_SECRETS):
        try:
            unseal(engine.guard.keys, id, sealed, note=False)
        except SecretError as error:
            told.append(str(error))
    return told[:SHOWN_SECRETS]


def _folders(engine: Engine) -> Finding:
    vaults = engine.store.vaults.vaults()
    gone = [vault for vault in vaults if not Path(vault.root).exists()]
    detail = "; ".join(f"{vault.name}: {vault.root} is not there" for vault in gone) or f"{len(vaults)}, all there"
    remedy = f"Bring it back, or run `trivet ingest --drop {gone[0].name}`." if gone else None
    return Finding(check="folders taken in", ok=not gone, detail=detail, remedy=remedy)


def _inbox(engine: Engine) -> Finding:
    waiting = engine.store.inbox.page("waiting", 1, 0).total
    return Finding(check="inbox", ok=True, detail=f"{waiting} proposals wait; `trivet inbox` shows them")


def _capture(engine: Engine) -> Finding:
    problem = last_problem() if engine.settings.capture_llm else None
    if problem is None:
        how = "rules and a language model" if engine.settings.capture_llm else "rules alone"
        return Finding(check="capture", ok=True, detail=f"{engine.settings.capture}, by {how}")
    remedy = "Mend the endpoint or the setting capture_llm, then run `trivet inbox curate`."
    return Finding(check="capture", ok=False, detail=f"{problem.at[:19]}: {problem.text}", remedy=remedy)


def _usage(engine: Engine) -> Finding:
    lost = engine.tally.lost
    detail = f"{lost} could not be written: {engine.tally.last_error}" if lost else "written down"
    return Finding(
        check="usage counts", ok=not lost, detail=detail, remedy="See that the store can be written." if lost else None
    )
