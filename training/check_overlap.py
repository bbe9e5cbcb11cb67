"""Prove that no evaluation query is in the training data, and count evaluation passages in it.

python check_overlap.py --data FOLDER_OF_KINDS --eval FOLDER --output overlap.json

Fails if an evaluation query is a training query, or a gold passage a training text.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections import Counter
from pathlib import Path

from overlap import normalised, read_evaluation


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    evaluation = read_evaluation(arguments.eval)
    totals = {
        "queries": _count(evaluation.queries.values()),
        "gold": _count(evaluation.gold.values()),
        "passages": _count(evaluation.passages.values()),
    }
    found: dict[str, dict[str, dict[str, int]]] = {}
    for path in sorted(arguments.data.glob("*.json.xz")):
        data = json.loads(lzma.decompress(path.read_bytes()))
        queries = {normalised(row[0]) for row in data["rows"]}
        texts = {normalised(text) for text in data["texts"]}
        found[path.name.partition(".")[0]] = {
            "queries": _count(
                evaluation.queries[one] for one in queries & evaluation.queries.keys()
            ),
            "gold": _count(evaluation.gold[one] for one in texts & evaluation.gold.keys()),
            "passages": _count(
                evaluation.passages[one] for one in texts & evaluation.passages.keys()
            ),
        }
    arguments.output.write_text(
        json.dumps({"evaluation": totals, "found_in_training": found}, indent=1) + "\n"
    )
    print(json.dumps(found, indent=1))
    wrong = [name for name, counts in found.items() if counts["queries"] or counts["gold"]]
    if wrong:
        raise SystemExit(f"evaluation queries or gold passages are in {', '.join(wrong)}")
    print("no evaluation query and no gold passage is in the training data")


def _count(owners: object) -> dict[str, int]:
    return dict(sorted(Counter(name for names in owners for name in names).items()))  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
