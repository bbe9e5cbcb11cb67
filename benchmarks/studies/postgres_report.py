"""Writes docs/results/postgres.md from postgres.json.

python benchmarks/studies/postgres_report.py docs/results/postgres.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tables import table

INTRODUCTION = """# Do both stores answer alike?

The same memories, vectors and questions in a file and in PostgreSQL, with the default recipe. PostgreSQL is asked
three ways: with the tenant's vectors in memory, which is what it does for all but the largest tenants; with an
exact search by the database; and by its HNSW index. The embedded store and the first way shortlist by sign bits
and score the shortlist in full, so their answers are the same; the other two differ where that shortlist, or the
index, left something out.
"""
CLOSING = "The bars: overlap@10 at least .95, nDCG@10 within .005, recall@10 of the index at least .99."
WAYS = ("in memory", "exact", "index")

Figures = dict[str, Any]


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    parts = [INTRODUCTION.strip(), alike(results["sets"]), index(results["sets"]), CLOSING, manifest(results)]
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
    head = ["set", "memories", "vectors", "queries", "overlap@10", "same order", "nDCG@10 SQLite / PostgreSQL"]
    return table([*head, "time, PostgreSQL to SQLite"], body)


def index(sets: Figures) -> str:
    body = [
        [
            name,
            rows,
            filter,
            f"{found['recall@10']:.4f}",
            str(found["fewest found"]),
            f"{found['time ratio to exact']:.2f}",
        ]
        for name, figures in sets.items()
        for rows in ("plain", "a tenth sensitive")
        for filter, found in figures["index against exact"][rows].items()
    ]
    title = "The index against an exact search, with the first 200 questions of each set:\n\n"
    return title + table(["set", "rows", "filter", "recall@10", "fewest found", "time, index to exact"], body)


def manifest(results: Figures) -> str:
    told = results["manifest"]
    embedder = f" with the vectors of {told['embedder']}" if "embedder" in told else ""
    return f"Made by `{told['command']}`{embedder} at {told['commit'][:12]} on {told['machine']}, {told['date']}."


if __name__ == "__main__":
    main()
