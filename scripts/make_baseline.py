"""Write tests/acceptance/lab/baseline: the defaults' values on the house set.

python scripts/make_baseline.py

Run it after changing a default. The test that guards the defaults fails if a case that passes in
the baseline no longer passes.
"""

from __future__ import annotations

import json
from pathlib import Path

from trivet.lab.datasets.plain_layout import house
from trivet.lab.measure.bench import open_bench
from trivet.lab.measure.gate import GATE_MEASURES
from trivet.lab.measure.run import run_arm

TARGET = Path(__file__).resolve().parents[1] / "tests" / "acceptance" / "lab" / "baseline"


def main() -> None:
    with open_bench(house()) as bench:
        per_query = run_arm(bench, "default").measured.per_query
        lines = [
            {
                "query": query.id,
                "stratum": query.stratum,
                "measures": {name: round(per_query[name][query.id], 4) for name in GATE_MEASURES},
            }
            for query in bench.dataset.queries
        ]
    TARGET.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (TARGET / "per_query.jsonl").write_text(text, encoding="utf-8")
    print(f"{len(lines)} queries written to {TARGET}")


if __name__ == "__main__":
    main()
