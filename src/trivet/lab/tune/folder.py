"""The folder beside the store where probes, results and history are kept, readable by its owner alone."""

from __future__ import annotations

from pathlib import Path

from trivet.atomic_write import OWNER_ONLY, atomic_write
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


def write_whole(target: Path, data: bytes, mode: int = OWNER_ONLY) -> None:
    """Replaces the file atomically. A link is followed, so that it stays one."""
    target = target.resolve()
    try:
        with atomic_write(target, mode) as file:
            file.write(data)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}. Nothing was changed.") from None
