"""Score dumped candidates with the packaged int8 rerankers, for fit_relevance.py.

python training/score_answers.py dev.json.xz --output FOLDER

Calibration uses these scores rather than the training run's: int8 shifts them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
from pathlib import Path
from typing import Any

import numpy as np

from trivet.models.rerank.local import best, fast

RERANKERS = {"3": fast, "12": best}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "candidates", type=Path, nargs="+", help="files that dump_features.py wrote"
    )
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    for name, opened in RERANKERS.items():
        reranker = opened()
        found: dict[str, Any] = {}
        for path in options.candidates:
            stem = path.name.partition(".")[0]
            query: list[int] = []
            place: list[int] = []
            score: list[float] = []
            with lzma.open(path) as file:
                readings = json.load(file)
            for reading in readings:
                scores = (
                    reranker.score(reading["text"], reading["texts"], math.inf)
                    if reading["texts"]
                    else []
                )
                query += [reading["query"]] * len(scores)
                place += reading["places"]
                score += scores
            columns = {"query": query, "place": place, "whole": score}
            found |= {f"{stem}-{column}": np.array(values) for column, values in columns.items()}
        np.savez_compressed(options.output / f"scores-{name}.npz", **found)


if __name__ == "__main__":
    main()
