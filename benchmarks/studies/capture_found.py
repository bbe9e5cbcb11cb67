"""Measure precision and recall of the capture rules.

`python benchmarks/studies/capture_found.py` uses the labeled messages
(tests/support/capture_cases.jsonl) that no rule was tuned on, and writes docs/results/capture.json.
Given the folder of test data, it also counts what the rules find in unlabeled chats.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from secrets_found import commit, microseconds, rate  # noqa: E402

from support.conversations import Case, cases  # noqa: E402
from trivet.agents.capture.rules import statements  # noqa: E402

OUT = ROOT / "docs" / "results" / "capture.json"
MESSAGE = (
    "The upload works now, thanks. I looked at the log and the worker is restarted twice an hour. "
    "Can you find out "
    "why, and add a test for the case that the bucket is empty? We decided to keep the old "
    "endpoint until June."
)


def measure(half: str) -> dict[str, Any]:
    messages = cases(half)
    found = [case for case in messages if statements(case.text)]
    worth = [case for case in messages if case.kind]
    right = [case for case in found if case.kind]
    kinds = sorted({str(case.kind) for case in worth})
    return {
        "precision": rate(len(right), len(found)),
        "recall": rate(len(right), len(worth)),
        "kept_of_the_rest": rate(len(found) - len(right), len(messages) - len(worth)),
        "recall_per_kind": {
            kind: rate(
                sum(case.kind == kind for case in right), sum(case.kind == kind for case in worth)
            )
            for kind in kinds
        },
        "precision_per_kind": _precision_per_kind(found),
        "kept_wrongly": [case.text for case in found if not case.kind],
        "missed": [case.text for case in worth if case not in right],
    }


def _precision_per_kind(found: Sequence[Case]) -> dict[str, Any]:
    taken = [(statements(case.text)[0].kind, case) for case in found]
    kinds = sorted({kind for kind, _ in taken})
    return {
        kind: rate(
            sum(k == kind and bool(case.kind) for k, case in taken),
            sum(k == kind for k, _ in taken),
        )
        for kind in kinds
    }


def on_chats(folder: Path) -> dict[str, Any]:
    """Count in chats between friends: little is worth keeping, and much is worded alike."""
    locomo = json.loads(gzip.decompress((folder / "locomo" / "locomo10.json.gz").read_bytes()))
    turns = [
        turn["text"]
        for one in locomo
        for name, session in one["conversation"].items()
        if name.startswith("session_") and isinstance(session, list)
        for turn in session
        if turn.get("text")
    ]
    chats = {"locomo (looked at while tuning)": turns, "lihua": lihua(folder)}
    return {
        name: rate(sum(bool(statements(text)) for text in texts), len(texts))
        for name, texts in chats.items()
    }


def lihua(folder: Path) -> list[str]:
    with zipfile.ZipFile(folder / "lihua" / "LiHuaWorld.zip") as archive:
        files = [
            archive.read(name).decode(errors="replace")
            for name in archive.namelist()
            if name.endswith(".txt")
        ]
    rows = (re.match(r"[A-Z]\w+: (.*)", row) for text in files for row in text.splitlines())
    return [row[1] for row in rows if row]


def main(arguments: Sequence[str]) -> None:
    tuned = measure("tune")
    result = {
        "commit": commit(),
        "labels": "tests/support/capture_cases.jsonl; rules were tuned on the other part only",
        "messages": {half: len(cases(half)) for half in ("held", "tune")},
        **measure("held"),
        "tuned_on": {name: tuned[name] for name in ("precision", "recall")},
        "microseconds": {
            "message_of_50_words": microseconds(lambda: statements(MESSAGE), rounds=50)
        },
    }
    if arguments:
        result["chats"] = on_chats(Path(arguments[0]))
    OUT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(
        json.dumps({name: result[name] for name in ("precision", "recall", "tuned_on")}, indent=1)
    )


if __name__ == "__main__":
    main(sys.argv[1:])
