"""The health checks of a store and its environment."""

from __future__ import annotations

import shutil
import stat
import time
from pathlib import Path

from trivet.contract import Recall
from trivet.errors import SecretError, TrivetError
from trivet.memory.admin.maintenance import MEGABYTE, all_budgets, following, stats
from trivet.memory.answer.other_trivet import OtherTrivet
from trivet.memory.engine import Engine
from trivet.memory.recall import recall_with_decision
from trivet.memory.transcript_progress import last_problem
from trivet.search.systems.federation import SystemAnswer
from trivet.search.systems.messages import SystemQuery
from trivet.secrets.guard import unseal
from trivet.settings.locations import is_file
from trivet.types import Finding

# With less, a write, a backup or a rebuild may fail halfway.
MIN_FREE_MB = 200
MAX_SECRETS_TRIED = 100_000
MAX_SECRETS_SHOWN = 3
DAMAGE_CHECKS = ("database file", "rows that can be read")
ASK_THE_OWNER = "Ask the server's owner: `trivet doctor` on the server tells more."
PROBE_RECALL = Recall(query="health", limit=1, rerank="off", expand=False)
# A word that almost every collection has.
PROBE_QUERY = SystemQuery("the", ("the",))


def run_checks(engine: Engine, whole: bool = True) -> tuple[Finding, ...]:
    """Return the findings; `whole` reads every row. A damaged store is not checked further."""
    stored = engine.store.upkeep.findings(whole)
    if any(not finding.ok and finding.check in DAMAGE_CHECKS for finding in stored):
        return (*stored, *_file_findings(engine))
    return (
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


def _passed(check: str, detail: str) -> Finding:
    return Finding(check=check, ok=True, detail=detail)


def _problem(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, ok=False, detail=detail, remedy=remedy)


def _sync(engine: Engine) -> tuple[Finding, ...]:
    stands = following(engine)
    if stands is None:
        return ()
    if stands.refused or stands.conflicts:
        remedy = (
            "`trivet sync refused` and `trivet sync conflicts` show them; `trivet sync "
            "resolve` decides."
        )
        return (_problem("sync", stands.summary, remedy),)
    return (_passed("sync", stands.summary),)


def _embedder(engine: Engine) -> Finding:
    if not engine.embedding.enabled:
        return _passed("embedder", "none; recall uses only words")
    try:
        identity = engine.embedding.probe()
    except TrivetError as error:
        remedy = (
            "Fix the embedder or choose another; until then recall lacks new vectors and jobs wait."
        )
        asked = f"asked at {endpoint}: " if (endpoint := engine.embedding.endpoint) else ""
        return _problem("embedder", f"{asked}{error}", remedy)
    if (difference := engine.embedding.difference()) is not None:
        remedy = (
            "Set embedder to the store's, or run `trivet reindex --vectors` to move the "
            "store to yours."
        )
        return _problem("embedder", difference.partition(". ")[0], remedy)
    serving = engine.embedding.serving()
    if serving is None or serving.identity != identity:
        detail = (
            f"{identity} answers; some vectors are still missing, `trivet embed` makes them now"
        )
        return _passed("embedder", detail)
    return _passed("embedder", f"{identity} answers")


def _jobs(engine: Engine) -> Finding:
    counts = stats(engine)
    if counts.failing_jobs:
        detail = (
            f"{counts.failing_jobs} of {counts.not_embedded} waiting jobs have failed; "
            f"last: {counts.last_error}"
        )
        return _problem("jobs", detail, "They are retried; `trivet embed` retries now.")
    return _passed("jobs", f"{counts.not_embedded} waiting")


def _readings(engine: Engine) -> Finding:
    check, backlog = "reading for the graph", engine.store.graph.backlog("rules")
    if backlog.failing:
        detail = (
            f"{backlog.failing} of {backlog.waiting} waiting memories could not be "
            f"read; last: {backlog.last_error}"
        )
        return _problem(check, detail, "Please report it; other legs still find these memories.")
    partly = engine.worker.read_in_part
    detail = f"{backlog.waiting} waiting" + (
        f"; {partly} took too long and were read in part" if partly else ""
    )
    return _passed(check, detail)


def _language_model(engine: Engine) -> Finding:
    check, triples = "language model for the graph", engine.worker.triples
    if triples is None:
        return _passed(check, "none; concepts are found only by rules")
    backlog = engine.store.graph.backlog("triples")
    used = f"{triples.budget.used()} of {triples.budget.tokens_a_day} tokens used today"
    detail = f"{triples.chat.model} at {triples.chat.host}: {backlog.waiting} memories wait, {used}"
    error = triples.probe() or (backlog.last_error if backlog.failing else None)
    if error:
        remedy = (
            "Fix the endpoint or the setting graph_llm; meanwhile only the rules extend the graph."
        )
        return _problem(check, f"{detail}; last error: {error}", remedy)
    return _passed(check, detail)


def _file_findings(engine: Engine) -> tuple[Finding, ...]:
    if not is_file(engine.settings.path):
        return ()
    file = Path(engine.settings.path).expanduser()
    # The store's own checks report a missing file.
    return (_file_rights(file), _free_space(file)) if file.exists() else ()


def _file_rights(file: Path) -> Finding:
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        remedy = f"Run `chmod 600 {file}`."
        return _problem("rights of the file", "others may read or write it", remedy)
    return _passed("rights of the file", "only yours")


def _free_space(file: Path) -> Finding:
    free = shutil.disk_usage(file.parent).free // MEGABYTE
    if free >= MIN_FREE_MB:
        return _passed("room on disk", f"{free:,} MB free")
    remedy = "Free disk space; `trivet tidy --dry-run` shows what could go."
    return _problem("room on disk", f"{free:,} MB free", remedy)


def _budgets(engine: Engine) -> Finding:
    # The memory budget is for the resident process, rarely this one.
    over = [
        one for one in all_budgets(engine) if one.exceeded and one.setting != "resident_memory_mb"
    ]
    if not over:
        return _passed("budgets", "within them")
    detail = "; ".join(f"{one.name}: {one.used:g} of {one.allowed:g} {one.unit}" for one in over)
    settings = ", ".join(one.setting for one in over)
    remedy = f"Allow more ({settings}), or run `trivet tidy --dry-run`."
    return _problem("budgets", detail, remedy)


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
    if not gone:
        return _passed("keys of secrets", f"{len(ids)} in use, all there")
    remedy = "Restore the key from a backup; `trivet config` shows where keys are searched."
    return _problem("keys of secrets", "; ".join(gone), remedy)


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
    if not gone:
        return _passed("folders taken in", f"{len(vaults)}, all there")
    detail = "; ".join(f"{vault.name}: {vault.root} is missing" for vault in gone)
    remedy = f"Restore it, or run `trivet ingest --drop {gone[0].name}`."
    return _problem("folders taken in", detail, remedy)


def _inbox(engine: Engine) -> Finding:
    waiting = engine.store.inbox.page("waiting", 1, 0).total
    return _passed("inbox", f"{waiting} proposals wait; `trivet inbox` shows them")


def _capture(engine: Engine) -> Finding:
    problem = last_problem() if engine.settings.capture_llm else None
    if problem is None:
        how = "rules and a language model" if engine.settings.capture_llm else "rules only"
        return _passed("capture", f"{engine.settings.capture}, by {how}")
    remedy = "Fix the endpoint or the setting capture_llm, then run `trivet inbox curate`."
    return _problem("capture", f"{problem.at[:19]}: {problem.text}", remedy)


def _usage(engine: Engine) -> Finding:
    counter = engine.usage_counter
    if not counter.lost:
        return _passed("usage counts", "written down")
    detail = f"{counter.lost} could not be written: {counter.last_error}"
    return _problem("usage counts", detail, "Make sure that the store can be written.")


def leg_finding(engine: Engine) -> Finding:
    health = recall_with_decision(engine, PROBE_RECALL)[0].health
    down = [f"{leg.leg}: {leg.reason or 'no answer'}" for leg in health.legs if not leg.answered]
    if down:
        return _problem("legs", "; ".join(down), "The others still answer. " + ASK_THE_OWNER)
    return _passed("legs", "all answer: " + ", ".join(leg.leg for leg in health.legs))


def system_findings(engine: Engine) -> tuple[Finding, ...]:
    """Query each system that is on."""
    declared = engine.systems.declared
    asked = {name: system for name, system in declared.items() if system.enabled}
    started = time.monotonic()
    futures = engine.systems.start(
        asked,
        PROBE_QUERY,
        lambda system: OtherTrivet(engine.settings, system, recall_with_decision),
    )
    off = [_passed(f"federation {name}", "off") for name in declared if name not in asked]
    return (*map(_system_finding, engine.systems.collect(futures, started)), *off)


def _system_finding(heard: SystemAnswer) -> Finding:
    check = f"federation {heard.name}"
    if heard.reply is None:
        remedy = (
            f"Fix [federation.{heard.name}] in trivet.toml or the system, or set "
            "enabled = false there."
        )
        said = f"; it says: {heard.quoted}" if heard.quoted else ""
        return _problem(check, f"{heard.health.reason}{said}", remedy)
    what = "places" if heard.reply.ranks_only else "scores"
    found = f"{len(heard.reply.hits)} hits with {what} in {heard.health.took_ms:.0f} ms"
    return _passed(check, "; ".join((found, *heard.reply.notes)))
