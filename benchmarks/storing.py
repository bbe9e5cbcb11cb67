r"""Measure whether storing slows down with size: memories per second of processor time, by portion.

PYTHONPATH=benchmarks python benchmarks/storing.py --size 16000 \
    --output benchmarks/results/storing.json

The synthetic notes are similar, which is hard on the search for near-duplicates. Nothing is
embedded: that costs the same per memory and would dominate.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from manifest import manifest
from texts import memories
from trivet import Trivet

PORTION = 2_000
AT_ONCE = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=16_000)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "storing.json"
    )
    options = parser.parse_args()
    texts = list(memories(options.size))
    rates: dict[str, int] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Trivet.open(Path(folder) / "memories.db", background=False, embedder="none") as trivet,
    ):
        for start in range(0, options.size, PORTION):
            rates[str(start + PORTION)] = round(_rate(trivet, texts[start : start + PORTION]))
            print(start + PORTION, rates[str(start + PORTION)], flush=True)
    result = {"manifest": manifest(), "memories a second, up to so many": rates}
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _rate(trivet: Trivet, texts: list[str]) -> float:
    began = time.process_time()
    for start in range(0, len(texts), AT_ONCE):
        trivet.remember_many({"content": text} for text in texts[start : start + AT_ONCE])
    return len(texts) / (time.process_time() - began)


if __name__ == "__main__":
    main()
