"""Put an exported model into the package: check it, copy it, and say what is left to do by hand.

    python scripts/take_model.py embedder FOLDER
    python scripts/take_model.py reranker FOLDER          the six layers of `best`
    python scripts/take_model.py reranker-fast FOLDER     those of `fast`
    python scripts/take_model.py changes FOLDER           the reader of changes

FOLDER holds model.onnx, tokenizer.json and model.json as training/export_onnx.py writes them.
"""

import argparse
import hashlib
import json
import shutil
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "src" / "trivet" / "models" / "weights"
FILES = ("model.onnx", "tokenizer.json", "model.json")
LARGEST_BYTES = 25 * 10**6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("embedder", "reranker", "reranker-fast", "changes"))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    check(arguments.folder, arguments.kind)
    for name in FILES:
        shutil.copy(arguments.folder / name, MODELS / arguments.kind / name)
    print(f"{MODELS / arguments.kind} is filled. Now fill in its MODEL_CARD.md, fit the calibration anew with")
    print("training/fit_relevance.py, and run tests/unit/models/embed/test_model_folders.py.")


def check(folder: Path, kind: str) -> None:
    description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    if description.get("kind") != ("embedder" if kind == "embedder" else "reranker"):
        raise SystemExit(f"{folder} holds a {description.get('kind')}, not a {kind}")
    for name, expected in description["sha256"].items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected:
            raise SystemExit(f"{folder / name} is not the file that model.json tells of; export it again")
    size = (folder / "model.onnx").stat().st_size
    if size > LARGEST_BYTES:
        raise SystemExit(f"{folder / 'model.onnx'} has {size:,} bytes; at most {LARGEST_BYTES:,} go into the package")


if __name__ == "__main__":
    main()
