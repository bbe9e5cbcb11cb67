"""Make the stock weights ready to travel: fp16 under our names, bytes of like meaning side by side, compressed; and
back.

python pack_model.py pack model.safetensors|weights.npz stock.bin
python pack_model.py unpack stock.bin stock.npz
"""

from __future__ import annotations

import io
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    action, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    (pack if action == "pack" else unpack)(source, target)


def pack(source: Path, target: Path) -> None:
    state = _read(source)
    flat = np.concatenate([value.reshape(-1) for value in state.values()])
    planes = flat.view(np.uint8).reshape(-1, 2)
    header = json.dumps({name: value.shape for name, value in state.items()}).encode()
    # Signs, exponents and the first of the mantissa are skewed but never repeat: Huffman codes are all that helps.
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
    low, high = planes[:, 0].tobytes(), packer.compress(planes[:, 1].tobytes()) + packer.flush()
    target.write_bytes(len(header).to_bytes(4, "little") + header + low + high)


def _read(source: Path) -> dict[str, np.ndarray]:
    if source.suffix == ".npz":
        with np.load(source) as arrays:
            return {name: arrays[name].astype(np.float16) for name in arrays.files}
    from safetensors.torch import load_file

    from encoder import from_transformers

    return {
        name: value.float().numpy().astype(np.float16) for name, value in from_transformers(load_file(source)).items()
    }


def unpack(source: Path, target: Path) -> None:
    data = io.BytesIO(source.read_bytes())
    shapes = json.loads(data.read(int.from_bytes(data.read(4), "little")))
    size = sum(int(np.prod(shape)) for shape in shapes.values())
    low = np.frombuffer(data.read(size), dtype=np.uint8)
    high = np.frombuffer(zlib.decompress(data.read()), dtype=np.uint8)
    flat = np.stack([low, high], axis=1).reshape(-1).view(np.float16)
    arrays, start = {}, 0
    for name, shape in shapes.items():
        stop = start + int(np.prod(shape))
        arrays[name] = flat[start:stop].reshape(shape)
        start = stop
    named: dict[str, Any] = dict(arrays)
    np.savez(target, **named)


if __name__ == "__main__":
    main()
