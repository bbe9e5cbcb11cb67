"""Take the table of words out of a reranker's file where it is the one that others have too.

    python scripts/share_words.py reranker reranker-fast changes

The rerankers and the reader of changes were trained with the word table of their base frozen, so all of them hold the
same 11.7 MB, a third of a file or more. `weights/words` holds it once, with the tokenizer, and a model's file only
names it. scripts/take_model.py does this for a model that it takes.
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
    """Whether the model's words are those that are shared; if so, they are taken out of its file."""
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
    """The first model that is shared gives the table."""
    if not TABLE.exists():
        WORDS.mkdir(exist_ok=True)
        np.save(TABLE, table)
        (WORDS / "tokenizer.json").write_bytes(tokenizer.read_bytes())


def _describe(folder: Path, whole: str) -> None:
    """`whole_sha256` is of the file with the words in it: a model's identity, which stores hold, stays what it was."""
    description = read_description(folder)
    beside = {
        f"../{WORDS.name}/{name}": sha256(WORDS / name) for name in (TABLE.name, "tokenizer.json")
    }
    description["sha256"] = {"model.onnx": sha256(folder / "model.onnx"), **beside}
    description |= {"whole_sha256": whole, "words": INITIALIZER}
    write_description(folder, description)


if __name__ == "__main__":
    main()
