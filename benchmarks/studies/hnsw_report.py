"""Writes hnsw.md and hnsw.svg beside the results of hnsw.py.

python benchmarks/studies/hnsw_report.py docs/results/hnsw.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from tables import table

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")

INTRODUCTION = """# The HNSW index of PostgreSQL, by ef_search

How much of an exact search the index finds, {depth} memories deep as a recall asks (`recall@{depth}`) and among the
first ten; `worst` is the question that lost most. Made by `{command}`, then `hnsw_report.py`, with PostgreSQL
{postgresql}, pgvector {pgvector}, ef_construction {ef_construction}, the vectors of {embedder}, {date}. {note}

![recall by ef_search](hnsw.svg)
"""
CLOSING = """A search asks the index for twice as many rows as memories, here {rows}, since a memory may have several
passages. Where ef_search is less than that, the iterative scan goes on in steps of ef_search until it has them: 10 and
20 find what 100 would, 40 what 120 would, at the price of a worse worst question. A value below {rows} saves nothing.
`1 %` shows the index alone under a filter; the product does not ask it there: up to 5,000 visible memories are searched
exactly."""


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    about = results["manifest"]
    about["postgresql"] = about["postgresql"].removeprefix("PostgreSQL ")
    parts = [INTRODUCTION.format(**about).strip()]
    parts += [section(name, one, about["depth"]) for name, one in results["sets"].items()]
    parts.append(CLOSING.format(rows=2 * about["depth"]))
    source.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    plot(results["sets"], about["depth"], source.with_suffix(".svg"))


def section(name: str, one: Any, depth: int) -> str:
    columns = ["filter", "ef_search", "recall@10", f"recall@{depth}", "worst", "median ms", "exact ms"]
    rows = [
        [row["filter"], str(row["ef_search"]), f"{row['recall@10']:.4f}", f"{row[f'recall@{depth}']:.4f}",
         f"{row['worst question']:.2f}", f"{row['median ms']:.1f}", f"{row['exact ms']:.1f}"]
        for row in one["curve"]
    ]  # fmt: skip
    head = f"## {name}: {one['memories']:,} memories, {one['questions']} questions, built in {one['built in s']:.0f} s"
    return f"{head}\n\n{table(columns, rows)}"


def plot(sets: Any, depth: int, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4))
    for colour, (name, one) in zip(COLOURS, sets.items(), strict=False):
        rows = [row for row in one["curve"] if row["filter"] == "everything"]
        efs = [row["ef_search"] for row in rows]
        axes.plot(efs, [row["recall@10"] for row in rows], "o-", color=colour, label=f"{name}, recall@10")
        axes.plot(efs, [row[f"recall@{depth}"] for row in rows], "s--", color=colour, label=f"{name}, recall@{depth}")
    axes.set_xscale("log")
    axes.set_xticks(efs, [str(ef) for ef in efs])
    axes.set_xlabel("ef_search")
    axes.set_ylabel("found of an exact search")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
