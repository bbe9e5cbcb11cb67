"""Write brief.json and brief.npy, which make single merges of a tokenizer.json accessible.

python scripts/make_brief_tokenizer.py

src/trivet/models/brief_tokenizer.py reads them. scripts/take_model.py also runs this.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from model_folders import WEIGHTS, note_sums
from trivet.models.vocabulary import FRAME, LONGEST, NO_RANK, ROW, TOKENS


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(f"{make(WEIGHTS / 'embedder'):,} tokens")


def make(folder: Path) -> int:
    """Return the number of tokens written; 0 if the tokenizer cannot be split."""
    for name in (FRAME, TOKENS):  # Files of another tokenizer would cut texts wrongly.
        (folder / name).unlink(missing_ok=True)
    frame = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    model = frame["model"]
    merges = [_pair(merge) for merge in model.get("merges", ())]
    merged = {left + right: (rank, len(left.encode())) for rank, (left, right) in enumerate(merges)}
    if model["type"] != "BPE" or len(merged) < len(merges):  # Two merges may make one token.
        return 0
    rows = sorted(
        (token.encode(), id, *merged.get(token, (NO_RANK, 0)))
        for token, id in model["vocab"].items()
        if len(token.encode()) <= LONGEST
    )
    special = {one["content"] for one in frame["added_tokens"]}
    model |= {
        "vocab": {token: id for token, id in model["vocab"].items() if token in special},
        "merges": [],
    }
    (folder / FRAME).write_text(json.dumps(frame, indent=1) + "\n", encoding="utf-8")
    np.save(folder / TOKENS, np.array(rows, ROW))
    note_sums(folder, FRAME, TOKENS)
    return len(rows)


def _pair(merge: str | list[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


if __name__ == "__main__":
    main()
