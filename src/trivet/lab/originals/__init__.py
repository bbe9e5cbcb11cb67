"""Public test collections in their original form, converted to the plain layout by name.

Nothing of them is part of the package: the folder they lie in is given by the caller or by TRIVET_DATA.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from trivet.errors import InvalidInput
from trivet.lab.dataset_types import Dataset
from trivet.lab.originals import cosqa, cranfield, hotpotqa, lihua, locomo, musique, scifact

ENVIRONMENT_VARIABLE = "TRIVET_DATA"

IMPORTERS: Mapping[str, Callable[[Path], Dataset]] = {
    "cosqa": cosqa.read,
    "cranfield": cranfield.read,
    "hotpotqa": hotpotqa.read,
    "lihua": lihua.read,
    "lihua-unanswerable": lihua.read_with_unanswerable,
    "locomo": locomo.read,
    "musique": musique.read,
    "scifact": scifact.read,
}


def import_original(name: str, data_folder: Path | str | None = None) -> Dataset:
    """The collection of that name, read from below the data folder (TRIVET_DATA if none is given)."""
    if name not in IMPORTERS:
        raise InvalidInput(f"There is no importer for {name!r}. Known names: {', '.join(IMPORTERS)}.")
    return IMPORTERS[name](find_data_folder(data_folder))


def find_data_folder(given: Path | str | None = None) -> Path:
    """The folder that holds the originals, one folder each."""
    chosen = given or os.environ.get(ENVIRONMENT_VARIABLE)
    if not chosen:
        raise InvalidInput(f"Where are the originals? Give the folder, or set {ENVIRONMENT_VARIABLE} to it.")
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise InvalidInput(f"{folder}: there is no such folder. It should hold the originals, one folder each.")
    return folder
