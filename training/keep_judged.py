r"""Store the large teacher's scores of unlabeled pairs by text, so readers train without it.

python training/keep_judged.py --texts packed/texts.json.xz --written OUT/texts.json.xz \
    --teacher taught --output training/judged

`--texts` is from pack_pairs.py, `--written` from model_written.py, `--teacher` the folder of
large_teacher.py. Writes answers.json.xz and changes.json.xz: `texts`, and `rows` of two text
numbers and a score: question or later note, then memory or earlier note. pack_pairs.py reads the
folder with `--judged`.
"""

from __future__ import annotations

import argparse
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = {"answers": ("query", "text"), "changes": ("new", "old")}
DIGITS = 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("texts", "written", "teacher", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    texts = [*_load(options.texts), *_load(options.written)["texts"]]
    for name, columns in COLUMNS.items():
        with np.load(options.teacher / f"{name}.npz") as said:
            known = np.isfinite(said["score"])
            pairs, scores = (
                np.stack([said[column][known] for column in columns], 1),
                said["score"][known],
            )
        each, rows = np.unique(pairs, return_inverse=True)
        rows = rows.reshape(-1, 2)
        order = np.lexsort(rows.T[::-1])
        told = zip(rows[order].tolist(), scores[order].tolist(), strict=True)
        kept = [[*row, round(score, DIGITS)] for row, score in told]
        packed = json.dumps(
            {"texts": [texts[place] for place in each], "rows": kept}, ensure_ascii=False
        )
        (options.output / f"{name}.json.xz").write_bytes(lzma.compress(packed.encode(), preset=9))
        print(name, len(kept), "rows,", len(each), "texts")


def _load(path: Path) -> Any:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    main()
