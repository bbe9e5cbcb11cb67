"""Split files into pieces for transfer, and join them.

python pieces.py cut FOLDER FILE...
python pieces.py join FILE...
"""

from __future__ import annotations

import sys
from pathlib import Path

PIECE = 15 * 2**20


def cut(folder: Path, files: list[Path]) -> None:
    for file in files:
        data = file.read_bytes()
        for number, start in enumerate(range(0, len(data), PIECE)):
            (folder / f"{file.name}.{number}").write_bytes(data[start : start + PIECE])


def join(files: list[Path]) -> None:
    """Join each named file from the pieces next to it."""
    for file in files:
        pieces = sorted(
            file.parent.glob(f"{file.name}.[0-9]*"), key=lambda piece: int(piece.suffix[1:])
        )
        file.write_bytes(b"".join(piece.read_bytes() for piece in pieces))


if __name__ == "__main__":
    if sys.argv[1] == "cut":
        cut(Path(sys.argv[2]), [Path(one) for one in sys.argv[3:]])
    else:
        join([Path(one) for one in sys.argv[2:]])
