"""`python -m trivet.code.index.help`: parses the share of a tree that it is told of, and keeps it in the index."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from trivet.code.encoder import bundled
from trivet.code.index.database import IndexFile
from trivet.code.index.helpers import Share
from trivet.code.index.refresh import parse_batches


def main() -> None:
    share = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Share, dec_hook=_path)
    asked_by, index = os.getppid(), IndexFile(share.index)
    try:
        for _ in parse_batches(index, share.root, share.files, share.began, bundled() if share.encoder else None):
            if os.getppid() != asked_by:  # it is gone, and with it whoever waits for this
                return
    finally:
        index.close()


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)


if __name__ == "__main__":
    main()
