"""Gather what the reader of changes is trained on: written pairs, and each pair's neighbours in other stores.

    python training/change_pairs.py --pairs training/changes/*.jsonl \
        --others training/lives/*/corpus.jsonl --check src/trivet/lab/lives/dev/changes.jsonl --output changes.json.xz

A new statement is set against the memories nearest to it among those of made-up stores: on save these are what it is
compared with, and they are no updates. `--check` names pairs that are scored and never trained on.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trivet.models.embed.registry import load

STORE, NEAREST = 200, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", nargs="+", type=Path, required=True)
    parser.add_argument("--check", nargs="*", type=Path, default=[])
    parser.add_argument("--others", nargs="+", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    others = sorted({json.loads(line)["text"] for path in options.others for line in _lines(path)})
    written = [_pair(line, path.stem) for path in options.pairs for line in _lines(path)]
    check = [_pair(line, f"{path.parent.name}-{path.stem}") for path in options.check for line in _lines(path)]
    rows = {"train": [*written, *_neighbours(written, others)], "check": [*check, *_neighbours(check, others)]}
    with lzma.open(options.output, "wt", encoding="utf-8") as file:
        json.dump(rows, file, ensure_ascii=False)
    print({name: (len(part), sum(one["update"] for one in part)) for name, part in rows.items()})


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _pair(line: str, hand: str) -> dict[str, Any]:
    pair = json.loads(line)
    return {"new": pair["new"], "old": pair["old"], "update": bool(pair["update"]), "hand": hand, "written": True}


def _neighbours(pairs: Sequence[dict[str, Any]], others: Sequence[str]) -> list[dict[str, Any]]:
    """The nearest of a store drawn by lot, by the bundled embedder."""
    model = load("bundled")
    assert model is not None
    theirs = np.asarray(model.embed_documents(list(others)))
    ours = np.asarray(model.embed_documents([pair["new"] for pair in pairs]))
    random = np.random.default_rng(1)
    found = []
    for pair, vector in zip(pairs, ours, strict=True):
        store = random.choice(len(others), min(STORE, len(others)), replace=False)
        near = store[np.argsort(-(theirs[store] @ vector))[:NEAREST]]
        found += [{**pair, "old": others[place], "update": False, "written": False} for place in near.tolist()]
    return found


if __name__ == "__main__":
    main()
