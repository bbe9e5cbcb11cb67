"""Write docs/results/postgres.md from postgres.json.

python benchmarks/studies/postgres_report.py docs/results/postgres.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tables import table

INTRODUCTION = """# Do SQLite and PostgreSQL answer alike?

**Question.** Do both stores give the same answers to the same memories, vectors and questions?

**Answer.** Yes, in the same order, with the tenant's vectors in memory, as for all but the largest
tenants. An exact search in the database or the HNSW index answers slightly differently where the
shortlist by sign bits, or the index, left something out.

**Method.** `python benchmarks/studies/postgres_likeness.py --url URL scifact locomo`, then
`postgres_report.py`; the default recipe. Required: overlap@10 of .95, nDCG@10 within .005,
recall@10 of the index at least .99. Measured on
"""
WAYS = ("in memory", "exact", "index")

Figures = dict[str, Any]


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    parts = [
        f"{INTRODUCTION.strip()} {manifest(results)}",
        alike(results["sets"]),
        index(results["sets"]),
    ]
    (source.parent / "postgres.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def alike(sets: Figures) -> str:
    body = [
        [
            name,
            f"{figures['memories']:,}",
            way,
            f"{figures[way]['queries']:,}",
            f"{figures[way]['overlap@10']:.4f}",
            f"{figures[way]['same order']:.3f}",
            f"{figures[way]['sqlite nDCG@10']:.4f} / {figures[way]['postgres nDCG@10']:.4f}",
            f"{figures[way]['time ratio']:.2f}",
        ]
        for name, figures in sets.items()
        for way in WAYS
    ]
    head = [
        "set",
        "memories",
        "vectors",
        "queries",
        "overlap@10",
        "same order",
        "nDCG@10 SQLite / PostgreSQL",
    ]
    return table([*head, "time, PostgreSQL to SQLite"], body)


def index(sets: Figures) -> str:
    found = [
        one
        for figures in sets.values()
        for rows in ("plain", "a tenth sensitive")
        for one in figures["index against exact"][rows].values()
    ]
    least, fewest = (
        min(one["recall@10"] for one in found),
        min(one["fewest found"] for one in found),
    )
    ratios = [one["time ratio to exact"] for one in found]
    return (
        "Against an exact search on the first 200 questions of each set, with and without a\n"
        "filter for 1 % of the memories and with a tenth of them sensitive, the index has a\n"
        f"recall@10 of at least {least:.4f}, never finds fewer than {fewest} memories, and\n"
        f"takes {min(ratios):.2f} to {max(ratios):.2f} times as long."
    )


def manifest(results: Figures) -> str:
    about = results["manifest"]
    embedder = f"the vectors of {about['embedder']}, " if "embedder" in about else ""
    return f"{embedder}{about['machine']}, {about['date']}."


if __name__ == "__main__":
    main()
