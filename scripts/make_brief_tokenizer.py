"""Write brief.json and brief.npy beside the embedder's tokenizer.json: its merges, each to be found without the rest.

    python scripts/make_brief_tokenizer.py

src/trivet/models/brief_tokenizer.py reads it. scripts/take_model.py does this for an embedder that it takes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from share_words import WEIGHTS, sha256
from trivet.models.brief_tokenizer import FRAME, LONGEST, NO_RANK, ROW, TOKENS


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(f"{make(WEIGHTS / 'embedder'):,} tokens")


def make(folder: Path) -> int:
    frame = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    model = frame["model"]
    if model["type"] != "BPE":
        raise SystemExit(
            f"{folder / 'tokenizer.json'} merges nothing: remove {FRAME} and {TOKENS}, and it is opened whole."
        )
    merged = {
        left + right: (rank, len(left.encode())) for rank, (left, right) in enumerate(map(_pair, model["merges"]))
    }
    if len(merged) < len(model["merges"]):
        raise SystemExit(f"Two merges make one token: remove {FRAME} and {TOKENS}, and the tokenizer is opened whole.")
    rows = sorted(
        (token.encode(), id, *merged.get(token, (NO_RANK, 0)))
        for token, id in model["vocab"].items()
        if len(token.encode()) <= LONGEST
    )
    special = {one["content"] for one in frame["added_tokens"]}
    model |= {"vocab": {token: id for token, id in model["vocab"].items() if token in special}, "merges": []}
    (folder / FRAME).write_text(json.dumps(frame, indent=1) + "\n", encoding="utf-8")
    np.save(folder / TOKENS, np.array(rows, ROW))
    path = folder / "model.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    description["sha256"] |= {name: sha256(folder / name) for name in (FRAME, TOKENS)}
    path.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    return len(rows)


def _pair(merge: str | list[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


if __name__ == "__main__":
    main()
