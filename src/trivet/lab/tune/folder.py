"""The folder beside the store where probes, results and history are kept, readable by its owner alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from trivet.errors import StoreError

SUFFIX = ".tune"
FOLDER_MODE = 0o700


def tune_folder(store: Path) -> Path:
    return store.with_name(store.name + SUFFIX)


def open_folder(store: Path) -> Path:
    """The folder, made if it is not there. A link in its place is refused: it could lead where others read."""
    folder = tune_folder(store)
    try:
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        if folder.is_symlink() or not folder.is_dir():
            raise StoreError(f"{folder} is not a folder of its own. Move it away; probes are written nowhere else.")
        folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise StoreError(f"{folder} cannot be made: {error.strerror}.") from None
    return folder


def write_whole(target: Path, data: bytes, mode: int = 0o600) -> None:
    """Others see the old file until the new one is whole and on disk. A link is followed, so that it stays one."""
    target = target.resolve()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".partial")
        partial = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.chmod(mode)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}. Nothing was changed.") from None
