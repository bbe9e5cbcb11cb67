"""Health checks of a store and its environment, each with its importance and a remedy.

A server's admin sees only checks of their tenant that are listed here. Paths, addresses and disk
space are for the machine's owner, who runs `trivet doctor` there.
"""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trivet.contract import Recall
from trivet.errors import SecretError, TrivetError
from trivet.memory.admin.maintenance import budgets, following, stats
from trivet.memory.answer.other_trivet import OtherTrivet
from trivet.memory.engine import Engine
from trivet.memory.recall import recall_with_decision
from trivet.memory.transcript_progress import last_problem
from trivet.search.systems.federation import SystemAnswer
from trivet.search.systems.messages import SystemQuery
from trivet.secrets.guard import unseal
from trivet.settings.locations import is_file
from trivet.types import Finding, Mending

# With less, a write, a backup or a rebuild may fail halfway.
MIN_FREE_MB = 200
MEGABYTE = 2**20

WHY_SYSTEMS_MATTER = "Its hits are missing from federated recalls."
MAX_SECRETS_TRIED = 100_000
MAX_SECRETS_SHOWN = 3

DAMAGE_CHECKS = ("database file", "rows that can be read")
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


def doctor(engine: Engine, whole: bool = True) -> tuple[Finding, ...]:
    """Return the findings; `whole` reads every row. A damaged store is not checked further."""
    stored = engine.store.upkeep.findings(whole)
    if any(not finding.ok and finding.check in DAMAGE_CHECKS for finding in stored):
        return tuple(with_explanation(finding) for finding in (*stored, *_file_findings(engine)))
    found = (
        *stored,
        _embedder(engine),
        _jobs(engine),
        _readings(engine),
        _language_model(engine),
        *_file_findings(engine),
        _budgets(engine),
        _keys(engine, whole),
        _folders(engine),
        _inbox(engine),
        _capture(engine),
        _usage(engine),
        *_sync(engine),
    )
    return tuple(with_explanation(finding) for finding in found)


def with_explanation(finding: Finding) -> Finding:
    if finding.ok:
        return finding
    matters = (
        WHY_SYSTEMS_MATTER
        if finding.check.startswith("federation ")
        else WHY_IT_MATTERS.get(finding.check)
    )
    return msgspec.structs.replace(finding, matters=matters, mends=REPAIRS.get(finding.check))


def _sync(engine: Engine) -> tuple[Finding, ...]:
    stands = following(engine)
    if stands is None:
        return ()
    if stands.refused or stands.conflicts:
        remedy = (
            "`trivet sync refused` and `trivet sync conflicts` show them; `trivet sync "
            "resolve` decides."
        )
        return (Finding(check="sync", ok=False, detail=stands.told, remedy=remedy),)
    return (Finding(check="sync", ok=True, detail=stands.told),)


def _embedder(engine: Engine) -> Finding:
    if not engine.embedding.enabled:
        return Finding(check="embedder", ok=True, detail="none: recall uses only words")
    try:
        identity = engine.embedding.probe()
    except TrivetError as error:
        remedy = (
            "Fix the embedder or choose another; until then recall lacks new vectors and jobs wait."
        )
        asked = f"asked at {endpoint}: " if (endpoint := engine.embedding.endpoint) else ""
        return Finding(check="embedder", ok=False, detail=f"{asked}{error}", remedy=remedy)
    if (difference := engine.embedding.difference()) is not None:
        remedy = (
            "Set embedder to the store's, or run `trivet reindex --vectors` to move the "
            "store to yours."
        )
        return Finding(
            check="embedder", ok=False, detail=difference.partition(". ")[0], remedy=remedy
        )
    serving = engine.embedding.serving()
    if serving is None or serving.identity != identity:
        detail = (
            f"{identity} answers; some vectors are still missing, `trivet embed` makes them now"
        )
        return Finding(check="embedder", ok=True, detail=detail)
    return Finding(check="embedder", ok=True, detail=f"{identity} answers")


def _jobs(engine: Engine) -> Finding:
    counts = stats(engine)
    if counts.failing_jobs:
        detail = (
            f"{counts.failing_jobs} of {counts.not_embedded} waiting jobs have failed; "
            f"last: {counts.last_error}"
        )
        return Finding(
            check="jobs",
            ok=False,
            detail=detail,
            remedy="They are retried; `trivet embed` retries now.",
        )
    return Finding(check="jobs", ok=True, detail=f"{counts.not_embedded} waiting")


def _readings(engine: Engine) -> Finding:
    check, backlog = "reading for the graph", engine.store.graph.backlog("rules")
    if backlog.failing:
        detail = (
            f"{backlog.failing} of {backlog.waiting} waiting memories could not be "
            f"read; last: {backlog.last_error}"
        )
        return Finding(
            check=check,
            ok=False,
            detail=detail,
            remedy="Please report it; other legs still find these memories.",
        )
    partly = engine.worker.read_in_part
    detail = f"{backlog.waiting} waiting" + (
        f"; {partly} took too long and were read in part" if partly else ""
    )
    return Finding(check=check, ok=True, detail=detail)


def _language_model(engine: Engine) -> Finding:
    check, triples = "language model for the graph", engine.worker.triples
    if triples is None:
        return Finding(check=check, ok=True, detail="none: concepts are found only by rules")
    backlog = engine.store.graph.backlog("triples")
    used = f"{triples.budget.used()} of {triples.budget.tokens_a_day} tokens used today"
    detail = f"{triples.chat.model} at {triples.chat.host}: {backlog.waiting} memories wait, {used}"
    error = triples.probe() or (backlog.last_error if backlog.failing else None)
    if error:
        remedy = (
            "Fix the endpoint or the setting graph_llm; meanwhile only the rules extend the graph."
        )
        return Finding(
            check=check, ok=False, detail=f"{detail}; last error: {error}", remedy=remedy
        )
    return Finding(check=check, ok=True, detail=detail)


def _file_findings(engine: Engine) -> tuple[Finding, ...]:
    if not is_file(engine.settings.path):
        return ()
    file = Path(engine.settings.path).expanduser()
    if not file.exists():
        return ()  # reported by the store's own checks
    open_to_others = stat.S_IMODE(file.stat().st_mode) & 0o077
    free = shutil.disk_usage(file.parent).free // MEGABYTE
    return (
        Finding(
            check="rights of the file",
            ok=not open_to_others,
            detail="others may read or write it" if open_to_others else "only yours",
            remedy=f"Run `chmod 600 {file}`." if open_to_others else None,
        ),
        Finding(
            check="room on disk",
            ok=free >= MIN_FREE_MB,
            detail=f"{free:,} MB free",
            remedy=None
            if free >= MIN_FREE_MB
            else "Free disk space; `trivet tidy --dry-run` shows what could go.",
        ),
    )


def _budgets(engine: Engine) -> Finding:
    # The memory budget is for the resident process, rarely this one.
    over = [one for one in budgets(engine) if one.exceeded and one.setting != "resident_memory_mb"]
    detail = "; ".join(f"{one.name}: {one.used:g} of {one.allowed:g} {one.unit}" for one in over)
    remedy = (
        f"Allow more ({', '.join(one.setting for one in over)}), or run `trivet tidy --dry-run`."
        if over
        else None
    )
    return Finding(check="budgets", ok=not over, detail=detail or "within them", remedy=remedy)


def _keys(engine: Engine, whole: bool) -> Finding:
    ids = engine.store.secrets.keys_in_use()
    gone: list[str] = []
    for id in ids:
        try:
            engine.guard.keys.get(id, note=False)
        except SecretError as error:
            gone.append(str(error))
    if whole and not gone:
        gone = _unopenable_secrets(engine)
    remedy = "Restore the key from a backup; `trivet config` shows where keys are searched."
    return Finding(
        check="keys of secrets",
        ok=not gone,
        detail="; ".join(gone) if gone else f"{len(ids)} in use, all there",
        remedy=remedy if gone else None,
    )


def _unopenable_secrets(engine: Engine) -> list[str]:
    errors: list[str] = []
    for id, sealed in engine.store.secrets.not_under("", MAX_SECRETS_TRIED):
        try:
            unseal(engine.guard.keys, id, sealed, note=False)
        except SecretError as error:
            errors.append(str(error))
    return errors[:MAX_SECRETS_SHOWN]


def _folders(engine: Engine) -> Finding:
    vaults = engine.store.vaults.vaults()
    gone = [vault for vault in vaults if not Path(vault.root).exists()]
    detail = (
        "; ".join(f"{vault.name}: {vault.root} is missing" for vault in gone)
        or f"{len(vaults)}, all there"
    )
    remedy = f"Restore it, or run `trivet ingest --drop {gone[0].name}`." if gone else None
    return Finding(check="folders taken in", ok=not gone, detail=detail, remedy=remedy)


def _inbox(engine: Engine) -> Finding:
    waiting = engine.store.inbox.page("waiting", 1, 0).total
    return Finding(
        check="inbox", ok=True, detail=f"{waiting} proposals wait; `trivet inbox` shows them"
    )


def _capture(engine: Engine) -> Finding:
    problem = last_problem() if engine.settings.capture_llm else None
    if problem is None:
        how = "rules and a language model" if engine.settings.capture_llm else "rules only"
        return Finding(check="capture", ok=True, detail=f"{engine.settings.capture}, by {how}")
    remedy = "Fix the endpoint or the setting capture_llm, then run `trivet inbox curate`."
    return Finding(
        check="capture", ok=False, detail=f"{problem.at[:19]}: {problem.text}", remedy=remedy
    )


def _usage(engine: Engine) -> Finding:
    lost = engine.usage_counter.lost
    detail = (
        f"{lost} could not be written: {engine.usage_counter.last_error}"
        if lost
        else "written down"
    )
    return Finding(
        check="usage counts",
        ok=not lost,
        detail=detail,
        remedy="Make sure that the store can be written." if lost else None,
    )


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
ASK_THE_OWNER = "Ask the server's owner: `trivet doctor` on the server tells more."
PROBE_RECALL = Recall(query="health", limit=1, rerank="off", expand=False)


def findings_for_admins(engine: Engine, whole: bool) -> tuple[Finding, ...]:
    found = [told for finding in doctor(engine, whole) if (told := _for_admin(finding)) is not None]
    if any(not finding.ok and finding.check == "database file" for finding in found):
        return tuple(found)
    return (*found, _legs(engine))


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


def _legs(engine: Engine) -> Finding:
    health = recall_with_decision(engine, PROBE_RECALL)[0].health
    down = [f"{leg.leg}: {leg.reason or 'no answer'}" for leg in health.legs if not leg.answered]
    detail = "; ".join(down) or "all answer: " + ", ".join(leg.leg for leg in health.legs)
    remedy = "The others still answer. " + ASK_THE_OWNER if down else None
    return Finding(
        check="legs",
        ok=not down,
        detail=detail,
        remedy=remedy,
        matters=WHY_IT_MATTERS["legs"] if down else None,
    )


# A word that almost every collection has.
PROBE_QUERY = SystemQuery("the", ("the",))


def system_findings(engine: Engine) -> tuple[Finding, ...]:
    declared = engine.systems.declared
    asked = {name: system for name, system in declared.items() if system.enabled}
    started = time.monotonic()
    futures = engine.systems.start(
        asked,
        PROBE_QUERY,
        lambda system: OtherTrivet(engine.settings, system, recall_with_decision),
    )
    off = [
        Finding(check=f"federation {name}", ok=True, detail="off")
        for name in declared
        if name not in asked
    ]
    return (*map(_system_finding, engine.systems.collect(futures, started)), *off)


def _system_finding(heard: SystemAnswer) -> Finding:
    check = f"federation {heard.name}"
    if heard.reply is None:
        remedy = (
            f"Fix [federation.{heard.name}] in trivet.toml or the system, or set "
            "enabled = false there."
        )
        said = f"; it says: {heard.quoted}" if heard.quoted else ""
        return Finding(check=check, ok=False, detail=f"{heard.health.reason}{said}", remedy=remedy)
    what = "places" if heard.reply.ranks_only else "scores"
    found = f"{len(heard.reply.hits)} hits with {what} in {heard.health.took_ms:.0f} ms"
    return Finding(check=check, ok=True, detail="; ".join((found, *heard.reply.notes)))
