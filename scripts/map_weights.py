"""Write mapped.onnx for a bundled model: its graph, with weights referenced in model.onnx.

python scripts/map_weights.py embedder reranker reranker-fast changes

The runtime parses model.onnx and copies its weights, but maps the tables that mapped.onnx
references. This halves the time to open a model, and processes share the memory
(docs/decisions/0043). Only byte tables are referenced, since they need no alignment.
scripts/take_model.py also runs this.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import onnx
from onnx import TensorProto

from model_folders import WEIGHTS, note_sums
from trivet.models.onnx import MAPPED

BYTES = (TensorProto.INT8, TensorProto.UINT8)
# Smaller tables are not worth a mapping.
LEAST_BYTES = 4096


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="+", choices=("embedder", "reranker", "reranker-fast", "changes")
    )
    for name in parser.parse_args().models:
        print(f"{name}: {map_weights(WEIGHTS / name)} tables stay in model.onnx")


def map_weights(folder: Path) -> int:
    source = folder / "model.onnx"
    whole, model = source.read_bytes(), onnx.load(source, load_external_data=False)
    tables = [
        one
        for one in model.graph.initializer
        if one.data_type in BYTES and len(one.raw_data) >= LEAST_BYTES
    ]
    for table in tables:
        _leave_in(source.name, whole.index(table.raw_data), table)
    (folder / MAPPED).write_bytes(model.SerializeToString(deterministic=True))
    note_sums(folder, MAPPED)
    return len(tables)


def _leave_in(file: str, offset: int, table: TensorProto) -> None:
    place = {"location": file, "offset": str(offset), "length": str(len(table.raw_data))}
    table.ClearField("raw_data")
    table.data_location = TensorProto.EXTERNAL
    for key, value in place.items():
        table.external_data.add(key=key, value=value)


if __name__ == "__main__":
    main()
