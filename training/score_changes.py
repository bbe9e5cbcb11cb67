"""Score the pairs to check with the shipped int8 reader of changes, for fit_changes.py.

python training/score_changes.py --pairs changes.json.xz --output scores.npz [--model FOLDER]
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from pathlib import Path

import numpy as np

from trivet.memory.supersession.verdict import FOLDER
from trivet.models import WEIGHTS
from trivet.models.rerank.local import OnnxReranker, described

LONGEST_SECONDS = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--model",
        type=Path,
        default=WEIGHTS / FOLDER,
        help="default: the one that comes with Trivet",
    )
    options = parser.parse_args()
    with lzma.open(options.pairs, "rt", encoding="utf-8") as file:
        lines = json.load(file)["check"]
    reader = OnnxReranker(described(options.model))
    begun = time.monotonic()
    found = [
        reader.score(line["new"], [line["old"]], time.monotonic() + LONGEST_SECONDS)[0]
        for line in lines
    ]
    print(f"{(time.monotonic() - begun) / len(lines) * 1000:.1f} ms a pair")
    np.savez_compressed(options.output, check=np.array(found))


if __name__ == "__main__":
    main()
