"""Fit when recall puts a later hit before an earlier one above it, and write the model with its manifest.

    python training/fit_later_first.py --pairs training/changes.jsonl MORE.jsonl --stores STORES/* \
        --output src/trivet/memory/answer/later.json

A store is a folder with memories.jsonl, queries.jsonl and qrels.tsv. True updates, asked about among other memories,
are to be lifted; look-alikes of which the earlier is asked for are not, nor are later memories that do not answer a
query which an earlier one above them answers. Figures are of pairs and stores that the model did not see.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fit_changes import Rows, fit
from trivet import Trivet
from trivet.contract import Recall
from trivet.memory.answer.currency import beside_features
from trivet.memory.answer.decision import Scored
from trivet.memory.changes.contrast import contrast
from trivet.memory.changes.statement import statement
from trivet.memory.recall import follow

OTHERS, SHOWN, FOLDS = 60, 15, 8
LIFTED, LIFTED_IF_SURE = 0.3, 0.1
# With a time given, recall leaves the order alone.
ANY_TIME = "2100-01-01"

Found = tuple[dict[str, float], bool, str, bool]  # features, label, group, whether it was written as a pair


def ranked(memory: Trivet, query: str) -> tuple[frozenset[str], tuple[Scored, ...]]:
    _, decision = follow(memory.engine, Recall(query=query, limit=SHOWN, relevance_at_least=0.0, as_of=ANY_TIME))
    return frozenset(decision.question.terms), decision.hits


def features_of(asked: frozenset[str], hits: Sequence[Scored], upper: int, lower: int) -> dict[str, float] | None:
    earlier, later = hits[upper], hits[lower]
    old, new = statement(earlier.memory.content), statement(later.memory.content)
    found = contrast(new, old).features
    beside = beside_features(asked, old, new, found["ratio"], earlier, later, upper, lower)
    return None if beside is None else {**found, **beside}


def of_pairs(memory: Trivet, pairs: Sequence[Mapping[str, Any]]) -> Iterator[Found]:
    for number, pair in enumerate(pairs):
        texts = [{"content": pair[side], "created_at": pair[f"{side}_at"]} for side in ("old", "new")]
        old, new = (one.id for one in memory.remember_many(texts))
        memory.drain()
        asked, hits = ranked(memory, pair["question"])
        places = {hit.memory.id: place for place, hit in enumerate(hits)}
        if old in places and new in places and (pair["update"] or places[old] < places[new]):
            upper, lower = sorted((places[old], places[new]))
            swapped = {
                **dict(enumerate(hits)),
                upper: hits[places[old]],
                lower: hits[places[new]],
            }
            features = features_of(asked, [swapped[place] for place in range(len(hits))], upper, lower)
            if features is not None:
                yield features, bool(pair["update"]), f"pair {number}", True
        for id in (old, new):
            memory.purge(id)


def of_store(memory: Trivet, folder: Path) -> Iterator[Found]:
    texts = [json.loads(line) for line in (folder / "memories.jsonl").read_text(encoding="utf-8").splitlines()]
    made = memory.remember_many({"content": one["content"], "created_at": one["created_at"]} for one in texts)
    memory.drain()
    names = {one.id: text["id"] for one, text in zip(made, texts, strict=True)}
    judged = [line.split("\t") for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()]
    right = {(row[0], row[1]) for row in judged}
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        query = json.loads(line)
        asked, hits = ranked(memory, query["text"])
        answers = [(query["id"], names[hit.memory.id]) in right for hit in hits]
        for upper in (place for place, answer in enumerate(answers) if answer):
            for lower in range(upper + 1, min(len(hits), upper + 7)):
                if not answers[lower] and hits[lower].memory.created_at > hits[upper].memory.created_at:
                    features = features_of(asked, hits, upper, lower)
                    if features is not None:
                        yield features, False, folder.name, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", nargs="+", type=Path, required=True)
    parser.add_argument("--stores", nargs="+", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    pairs = [json.loads(line) for path in options.pairs for line in path.read_text(encoding="utf-8").splitlines()]
    stores = [folder for folder in sorted(options.stores) if (folder / "qrels.tsv").exists()]
    found: list[Found] = []
    with tempfile.TemporaryDirectory() as scratch:
        with Trivet.open(f"{scratch}/pairs.db", background=False) as memory:
            lines = [line for folder in stores for line in (folder / "memories.jsonl").read_text().splitlines()]
            others = random.Random(1).sample([json.loads(line) for line in lines], OTHERS)
            memory.remember_many({"content": one["content"], "created_at": one["created_at"]} for one in others)
            memory.drain()
            identity = memory.engine.embedding.identity or ""
            found += of_pairs(memory, pairs)
        for number, folder in enumerate(stores):
            with Trivet.open(f"{scratch}/{number}.db", background=False) as memory:
                found += of_store(memory, folder)
    _write(options.output, found, identity.partition("/")[0], len(stores))


def _write(output: Path, found: Sequence[Found], embedder: str, stores: int) -> None:
    names = tuple(found[0][0])
    groups = sorted({group for _, _, group, _ in found})
    fold_of = dict(zip(groups, np.random.default_rng(1).permutation(len(groups)) % FOLDS, strict=True))
    rows = Rows(
        names,
        np.array([[features[name] for name in names] for features, *_ in found]),
        np.array([label for _, label, _, _ in found]),
        np.array([fold_of[group] for _, _, group, _ in found]),
        np.array([written for *_, written in found]),
    )
    chances = np.zeros(len(found))
    for fold in range(FOLDS):
        weights, bias = fit(rows, rows.pair != fold)
        test = rows.pair == fold
        chances[test] = 1.0 / (1.0 + np.exp(-(rows.values[test] @ weights + bias)))
    weights, bias = fit(rows, np.ones(len(found), bool))
    linear = {
        "bias": round(bias, 4),
        "weights": {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)},
    }
    lifted = chances >= LIFTED
    manifest = {
        "updates": int(rows.label.sum()),
        "look-alikes": int((rows.written & ~rows.label).sum()),
        "others": int((~rows.written).sum()),
        "stores": stores,
        "on what was not seen": {
            "updates lifted": round(float(lifted[rows.label].mean()), 3),
            "look-alikes lifted": round(float(lifted[rows.written & ~rows.label].mean()), 3),
            "others lifted": round(float(lifted[~rows.written].mean()), 4),
        },
    }
    written = {
        "embedders": {embedder: linear},
        "lifted": LIFTED,
        "lifted_if_sure": LIFTED_IF_SURE,
        "manifest": manifest,
    }
    output.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(manifest, indent=1))


if __name__ == "__main__":
    main()
