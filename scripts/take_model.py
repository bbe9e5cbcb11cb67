"""Put an exported model into the package: check it, copy it, and list the remaining manual steps.

python scripts/take_model.py embedder FOLDER
python scripts/take_model.py reranker FOLDER          the twelve layers of `best`
python scripts/take_model.py reranker-fast FOLDER     those of `fast`
python scripts/take_model.py changes FOLDER           the reader of changes

FOLDER holds model.onnx, tokenizer.json and model.json as training/export_onnx.py writes them.
"""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np

import make_brief_tokenizer
import share_words
from map_weights import map_weights
from model_folders import WEIGHTS, read_description, sha256, write_description
from trivet.models.embed.onnx import OnnxEmbedder, described

FILES = ("model.onnx", "tokenizer.json", "model.json")
LIVES = Path(__file__).resolve().parents[1] / "training" / "lives"
EACH = 4
LARGEST_BYTES = 36 * 10**6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("embedder", "reranker", "reranker-fast", "changes"))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    check(arguments.folder, arguments.kind)
    for name in FILES:
        shutil.copy(arguments.folder / name, WEIGHTS / arguments.kind / name)
    taken = WEIGHTS / arguments.kind
    if arguments.kind != "embedder" and not share_words.share(taken):
        print("It has words of its own, so its file stays whole: look at the size of the wheel.")
    map_weights(taken)  # Before opening the model: the existing graph belongs to its predecessor.
    if arguments.kind == "embedder":
        make_brief_tokenizer.make(taken)
        measure_background(taken)
    print(f"{taken} is filled. Now fill in its MODEL_CARD.md, fit the calibration again with")
    print("training/fit_relevance.py, and run tests/unit/models/embed/test_model_folders.py.")


def measure_background(folder: Path) -> None:
    """Return the similarity of questions about one life to memories of others, for model.json."""
    embedder = OnnxEmbedder(described(folder))
    lives = sorted(one for one in LIVES.iterdir() if one.is_dir())
    memories, questions = (
        [_texts(life / name) for life in lives] for name in ("corpus.jsonl", "queries.jsonl")
    )
    documents = [embedder.embed_documents(own) for own in memories]
    asked = [embedder.embed_queries(own) for own in questions]
    pairs = [
        (own, other) for own in range(len(lives)) for other in range(len(lives)) if own != other
    ]
    cosines = np.concatenate([(asked[own] @ documents[other].T).ravel() for own, other in pairs])
    found = {"mean": round(float(cosines.mean()), 4), "deviation": round(float(cosines.std()), 4)}
    write_description(folder, {**read_description(folder), "background": found})


def _texts(path: Path) -> list[str]:
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()][
        ::EACH
    ]


def check(folder: Path, kind: str) -> None:
    description = read_description(folder)
    if description.get("kind") != ("embedder" if kind == "embedder" else "reranker"):
        raise SystemExit(f"{folder} holds a {description.get('kind')}, not a {kind}")
    for name, expected in description["sha256"].items():
        if sha256(folder / name) != expected:
            raise SystemExit(
                f"{folder / name} is not the file that model.json describes; export it again"
            )
    size = (folder / "model.onnx").stat().st_size
    if size > LARGEST_BYTES:
        raise SystemExit(
            f"{folder / 'model.onnx'} has {size:,} bytes; at most {LARGEST_BYTES:,} go into the "
            "package"
        )


if __name__ == "__main__":
    main()
