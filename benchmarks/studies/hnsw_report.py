"""Write hnsw.md beside the results of hnsw.py.

python benchmarks/studies/hnsw_report.py docs/results/hnsw.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tables import table

INTRODUCTION = """# PostgreSQL's HNSW index by ef_search

**Question.** How much of an exact search does the index find, {depth} memories deep as a recall
asks?

**Answer.** At the shipped `hnsw.ef_search` = 200, it misses almost nothing on real texts and 2 % on
made-up ones. A search asks for {rows} rows; a value below that only makes the worst question worse.
Trivet does not use the index for up to 5,000 visible memories, of which an exact search is faster.

**Method.** `{command}`,
then `hnsw_report.py`. PostgreSQL {postgresql}, pgvector {pgvector}, ef_construction {ef_construction},
vectors of {embedder}, {date}. Two busy
cores: compare times within a column. [hnsw.json](hnsw.json) has the filtered searches.
"""


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    about = results["manifest"]
    about["postgresql"] = about["postgresql"].removeprefix("PostgreSQL ")
    text = INTRODUCTION.format(rows=2 * about["depth"], **about).strip()
    source.with_suffix(".md").write_text(
        f"{text}\n\n{curves(results['sets'], about['depth'])}\n", encoding="utf-8"
    )


def curves(sets: Any, depth: int) -> str:
    """Return a row for each ef_search, without a filter."""
    columns = {
        "recall@10": ".3f",
        f"recall@{depth}": ".3f",
        "worst question": ".2f",
        "median ms": ".0f",
    }
    rows: dict[int, list[str]] = {}
    for one in sets.values():
        for row in one["curve"]:
            if row["filter"] == "everything":
                cells = ", ".join(f"{row[name]:{form}}" for name, form in columns.items())
                rows.setdefault(row["ef_search"], []).append(cells)
    head = [
        f"{name}, {one['memories']:,} memories, exact {_exact(one):.0f} ms"
        for name, one in sets.items()
    ]
    told = f"Cells: {', '.join(columns)}."
    body = [[str(ef), *cells] for ef, cells in rows.items()]
    return f"{told}\n\n{table(['ef_search', *head], body)}"


def _exact(one: Any) -> float:
    return float(next(row["exact ms"] for row in one["curve"] if row["filter"] == "everything"))


if __name__ == "__main__":
    main()
