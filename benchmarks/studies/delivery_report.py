"""Write docs/results/delivery.md from a run of `trivet lab delivery`.

python benchmarks/studies/delivery_report.py docs/results/delivery-test.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tables import share, table

PAGE = Path("docs/results/delivery.md")
SURFACES = {
    "recall": "`memory_recall` over MCP",
    "prompt": "hook before a prompt",
    "start": "hook at session start",
}
COLUMNS = ("delivered@1", "delivered@3", "kept", "refused", "current")
# Measures of each surface. A session start has no order: it delivers or not.
SHOWN = {
    "recall": ("delivered@1", "delivered@3", "", "refused", "current"),
    "prompt": COLUMNS,
    "start": ("", "delivered", "", "", ""),
}
# What the strata of a surface differ in.
STRATA = {
    "recall": ("delivered@1", "delivered@3", "refused", "current"),
    "prompt": ("delivered@3", "kept"),
}
ALL = "(all)"
HEAD = """# What reaches an agent

**Question.** How often does an agent get the memory that answers, over MCP and from hooks, and how
often does Trivet stay silent when nothing answers?

**Answer.** On made-up stores held out from every choice, a recall gives an answer among its first
three memories for {recall} of the questions, the hook for {prompt}. The hook stays
silent on {refused} of the unanswerable ones. Missed goals: refused .70, current .95, kept .95.

**Method.** `trivet lab delivery lives/test --out docs/results/delivery-test.json`, then
`delivery_report.py`; {date}. 289 memories and 409 questions, on which nothing was fitted
(unlike [`lives/dev`](delivery-dev.json)). *delivered@k*: an answer is among the first k memories.
*kept*: an answerable question gets anything. *refused*: an unanswerable question gets nothing from
the hook, or "probably nothing is relevant" from recall. *current*: no outdated memory stands before
the answer, measured before recall reordered only stated updates
([0039](../decisions/0039-order-of-updated-facts.md)).

Means with 95 % intervals:

"""
BY_STRATUM = """
By stratum ([intervals](delivery-test.json)). A one-word prompt recalls only if no dictionary has
the word, which costs some keyword queries.
"""

Results = Mapping[str, Any]


def main() -> None:
    test = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rows = {(row["surface"], row["stratum"]): row["values"] for row in test["rows"]}
    head = HEAD.format(
        recall=_mean(rows["recall", ALL], "delivered@3"),
        prompt=_mean(rows["prompt", ALL], "delivered@3"),
        refused=_mean(rows["prompt", ALL], "refused"),
        date=test["manifest"]["date"],
    )
    parts = [overall(test), BY_STRATUM.strip(), strata(rows), calibration(test)]
    PAGE.write_text(head + "\n\n".join(parts) + "\n", encoding="utf-8")


def overall(results: Results) -> str:
    body = []
    for row in results["rows"]:
        if row["stratum"] == ALL:
            shown = (*SHOWN[row["surface"]], "tokens")
            body.append(
                [SURFACES[row["surface"]], *(_interval(row["values"], name) for name in shown)]
            )
    return table(["surface", *COLUMNS, "tokens"], body)


def strata(rows: Mapping[tuple[str, str], Results]) -> str:
    names = [stratum for surface, stratum in rows if surface == "recall" and stratum != ALL]
    columns = [(surface, name) for surface, shown in STRATA.items() for name in shown]
    body = [
        [stratum, *(_mean(rows[surface, stratum], name) for surface, name in columns)]
        for stratum in names
    ]
    return table(["stratum", *(f"{surface}: {name}" for surface, name in columns)], body)


def _mean(values: Results, name: str) -> str:
    return share(values[name]["mean"]) if name in values else ""


def _interval(values: Results, name: str) -> str:
    if name not in values:
        return ""
    found = values[name]
    if name == "tokens":
        return f"{found['mean']:.0f}"
    return f"{share(found['mean'])} ({found['low']:.2f} to {found['high']:.2f})"


def calibration(results: Results) -> str:
    own, small = (
        f"{results[name]:.3f}" for name in ("calibration_error", "calibration_error_small")
    )
    small_stores = f"in stores of under 50 memories by {small}"
    return f"Stated probabilities are off by {own} on average; {small_stores}."


if __name__ == "__main__":
    main()
