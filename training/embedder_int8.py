r"""Measure an embedder's quantization loss: an int8 file against its weights, on small stores.

python training/embedder_int8.py --eval eval.json.xz --onnx FOLDER --model student.npz \
    --output OUT.json

Embeds one text at a time, like the product. Reports the mean and lowest cosine of int8 to float
vectors, and nDCG@10 of both. Of other corpora, `--sample` texts are compared by cosine only: a
whole corpus would take an hour.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encoder import Encoder, embedded, encoder_alone, load_half, ready, shape_of
from judge_dense import Judge, measured, ranked
from judge_int8 import session

STORES = ("house", "lives", "mixed")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("eval", "onnx", "model", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--prefixed", action="store_true")
    parser.add_argument("--stores", nargs="*", default=STORES)
    parser.add_argument("--sample", type=int, default=300)
    arguments = parser.parse_args()
    judge = Judge(arguments.eval, arguments.onnx / "tokenizer.json", "cpu")
    judge.texts.prefixed = arguments.prefixed
    stores = [store for store in judge.stores if store.name in arguments.stores]
    others = np.concatenate(
        [store.passages for store in judge.stores if store.name not in (*arguments.stores, "union")]
    )
    sampled = np.random.default_rng(0).permutation(others)[: arguments.sample]
    which = np.concatenate(
        [*(np.concatenate([store.passages, store.queries]) for store in stores), sampled]
    )
    state = encoder_alone(load_half(arguments.model))
    with torch.no_grad():
        whole = _spread(
            judge,
            which,
            embedded(ready(Encoder(shape_of(state)), state, "cpu"), judge.texts, which),
        )
    small = _spread(judge, which, torch.from_numpy(int8_vectors(judge, arguments.onnx, which)))
    cosines = (whole[which] * small[which]).sum(1).numpy()
    found: dict[str, Any] = {
        "cosine": {"mean": float(cosines.mean()), "least": float(cosines.min())}
    }
    for store in stores:
        before, after = (measured(store, *ranked(store, vectors)) for vectors in (whole, small))
        found[store.name] = {"float": before["ndcg"], "int8": after["ndcg"]}
    arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))


def int8_vectors(judge: Judge, folder: Path, which: np.ndarray) -> np.ndarray:
    run = session(folder / "model.onnx")
    rows = []
    for place in which:
        ids, mask, _ = judge.texts.singles(torch.tensor([place]), int(judge.texts.lengths[place]))
        own = ids[:, mask[0]].numpy()
        rows.append(run.run(None, {"input_ids": own, "attention_mask": np.ones_like(own)})[0][0])
    return np.stack(rows)


def _spread(judge: Judge, which: np.ndarray, vectors: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(len(judge.texts.lengths), vectors.shape[1])
    table[torch.as_tensor(which)] = vectors.float()
    return table


if __name__ == "__main__":
    main()
