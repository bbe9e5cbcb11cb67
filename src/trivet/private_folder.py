"""Makes folders that only their owner may enter."""

from __future__ import annotations

from pathlib import Path

OWNER_ONLY = 0o700


def private_folder(folder: Path) -> Path:
    """Makes a folder unless it is there, and those above it that are missing, each for its owner alone.

    `Path.mkdir(parents=True)` gives its mode to the last one only. A folder that is there keeps its rights.
    """
    for one in reversed([above for above in folder.parents if not above.exists()]):
        one.mkdir(mode=OWNER_ONLY, exist_ok=True)
    folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
    return folder
