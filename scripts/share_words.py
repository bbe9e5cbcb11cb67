"""Remove the word table from a reranker's file if it equals the shared one.

python scripts/share_words.py reranker reranker-fast changes

The rerankers and the reader of changes were trained with a frozen word table, so all share the same
11.7 MB, a third of a file or more. `weights/words` holds it once, with the tokenizer, and each
model's file references it. scripts/take_model.py also runs this.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from model_folders import WEIGHTS, read_description, sha256, write_description

WORDS = WEIGHTS / "words"
TABLE = WORDS / "words.npy"
INITIALIZER = "encoder.embeddings.word_embeddings.weight_quantized"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", choices=("reranker", "reranker-fast", "changes"))
    for name in parser.parse_args().models:
        print(
            name,
            "shares its words" if share(WEIGHTS / name) else "has words of its own and stays whole",
        )


def share(folder: Path) -> bool:
    """Remove the words if they equal the shared ones; return whether they do."""
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    table = next(one for one in model.graph.initializer if one.name == INITIALIZER)
    if table.data_location == TensorProto.EXTERNAL:
        return True
    _found(numpy_helper.to_array(table), folder / "tokenizer.json")
    same_words = np.array_equal(numpy_helper.to_array(table), np.load(TABLE))
    if (
        not same_words
        or (folder / "tokenizer.json").read_bytes() != (WORDS / "tokenizer.json").read_bytes()
    ):
        return False
    whole = sha256(folder / "model.onnx")
    table.ClearField("raw_data")
    table.data_location = TensorProto.EXTERNAL
    entry = table.external_data.add()
    entry.key, entry.value = "location", TABLE.name
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tokenizer.json").unlink()
    _describe(folder, whole)
    return True


def _found(table: np.ndarray, tokenizer: Path) -> None:
    if not TABLE.exists():
        WORDS.mkdir(exist_ok=True)
        np.save(TABLE, table)
        (WORDS / "tokenizer.json").write_bytes(tokenizer.read_bytes())


def _describe(folder: Path, whole: str) -> None:
    """Keep `whole_sha256`, of the file with its words: stores hold it as the model's identity."""
    description = read_description(folder)
    beside = {
        f"../{WORDS.name}/{name}": sha256(WORDS / name) for name in (TABLE.name, "tokenizer.json")
    }
    description["sha256"] = {"model.onnx": sha256(folder / "model.onnx"), **beside}
    description |= {"whole_sha256": whole, "words": INITIALIZER}
    write_description(folder, description)


if __name__ == "__main__":
    main()
