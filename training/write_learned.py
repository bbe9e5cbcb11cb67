"""Write the learned fusion that learned.py fitted into the package.

python training/write_learned.py learned.npz src/trivet/search/fuse/learned.json
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np


def main() -> None:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    with np.load(source) as arrays:
        pairs = zip(arrays["names"], arrays["weights"], strict=True)
        weights = {str(name): round(float(weight), 6) for name, weight in pairs}
    manifest = {
        "made_by": "training/learned.py, training/write_learned.py",
        "sha256": {source.name: hashlib.sha256(source.read_bytes()).hexdigest()},
    }
    target.write_text(json.dumps({"weights": weights, "manifest": manifest}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
