"""Similarity thresholds never merge different names, measured on labeled pairs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from trivet.graph.concepts import canonical
from trivet.memory.worker.triple_prompt import (
    DIFFERENT_NAME_NEARNESS,
    SAME_NAME_NEARNESS,
    may_be_same_name,
)
from trivet.models.embed.base import similarity_baseline_of
from trivet.models.embed.registry import DEFAULT, load

PAIRS = Path(__file__).with_name("name_pairs.tsv")


def pairs() -> list[dict[str, str]]:
    with PAIRS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_labeled_pairs_are_valid() -> None:
    rows = pairs()
    assert len({(row["a"], row["b"]) for row in rows}) == len(rows) >= 200
    assert {row["label"] for row in rows} == {"same", "different"}
    assert all(canonical(row["a"]) != canonical(row["b"]) for row in rows), (
        "equal names need no vectors"
    )


def test_different_pairs_never_merge_and_asking_pays_off() -> None:
    rows = [row for row in pairs() if may_be_same_name(row["a"], row["b"])]
    embedder = load(DEFAULT)  # Name comparison uses this model whatever the store's embedder is.
    assert embedder is not None
    first, second = (embedder.embed_documents([row[end] for row in rows]) for end in ("a", "b"))
    near = [
        similarity_baseline_of(embedder).nearness(float(cosine))
        for cosine in np.sum(first * second, axis=1)
    ]
    merged = [
        row["label"]
        for row, nearness in zip(rows, near, strict=True)
        if nearness >= SAME_NAME_NEARNESS
    ]
    asked = [
        row["label"]
        for row, nearness in zip(rows, near, strict=True)
        if DIFFERENT_NAME_NEARNESS <= nearness < SAME_NAME_NEARNESS
    ]
    assert set(merged) == {"same"}
    assert asked.count("same") > asked.count("different"), "most pairs asked about must be the same"
