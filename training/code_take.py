"""Install trained word vectors for code search: python training/code_take.py terms.npz words.npz

Vectors have eight bits and a scale each, under their term's hash. In model.json, `floor` is the
mean cosine of a question to chunks not its own, and `near` the 95th percentile of those.
"""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np

from trivet.analyse.terms import hashed
from trivet.code.encoder import FOLDER, SCALE

NAME = "trivet-code-words"
SAMPLE, MOSTLY = 5_000, 95


def main() -> None:
    terms, trained = np.load(sys.argv[1]), np.load(sys.argv[2])
    vocabulary = bytes(terms["vocabulary"]).decode().split("\n")
    table = trained["table"].astype(np.float32)
    numbers = np.array([hashed(term) for term in vocabulary], dtype=np.uint64)
    order = np.argsort(numbers)
    largest = np.abs(table).max(1)
    FOLDER.mkdir(exist_ok=True)
    np.savez(
        FOLDER / "words.npz",
        terms=numbers[order],
        table=np.rint(table / largest[:, None] * SCALE).astype(np.int8)[order],
        scales=(largest / SCALE)[order].astype(np.float16),
        asked=np.exp(trained["weights"])[order].astype(np.float16),
    )
    digest = hashlib.sha256((FOLDER / "words.npz").read_bytes()).hexdigest()
    floor, near = background(terms, trained)
    description = {
        "name": NAME,
        "kind": "code",
        "dimension": table.shape[1],
        "words": len(vocabulary),
        "floor": floor,
        "near": near,
        "sha256": {"words.npz": digest},
    }
    (FOLDER / "model.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(description))


def background(terms: dict[str, np.ndarray], trained: dict[str, np.ndarray]) -> tuple[float, float]:
    """Return mean and 95th percentile of cosines to other chunks of the same repository."""
    chance = np.random.default_rng(7)
    which = np.sort(chance.choice(int(terms["trained"]), SAMPLE, replace=False))
    questions = vectors(terms, trained, "query", which, np.exp(trained["weights"]))
    chunks = vectors(terms, trained, "document", which, None)
    same = terms["repository"][which][:, None] == terms["repository"][which][None, :]
    np.fill_diagonal(same, val=False)
    cosines = (questions @ chunks.T)[same]
    return round(float(cosines.mean()), 4), round(float(np.percentile(cosines, MOSTLY)), 4)


def vectors(
    terms: dict[str, np.ndarray],
    trained: dict[str, np.ndarray],
    side: str,
    which: np.ndarray,
    asked: np.ndarray | None,
) -> np.ndarray:
    ends = np.cumsum(terms[f"{side}_lengths"].astype(np.int64))
    rows = []
    for at in which:
        own = terms[f"{side}_terms"][ends[at] - terms[f"{side}_lengths"][at] : ends[at]]
        weights = np.ones(len(own)) if asked is None else asked[own]
        summed = weights @ trained["table"][own].astype(np.float32)
        rows.append(summed / max(float(np.linalg.norm(summed)), 1e-9))
    return np.array(rows)


if __name__ == "__main__":
    main()
