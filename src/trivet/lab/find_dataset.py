"""Where datasets are: the one of our own, those that were imported, and any folder in the plain layout."""

from __future__ import annotations

from pathlib import Path

from trivet.errors import InvalidInput
from trivet.lab.bench import cache_folder
from trivet.lab.dataset import house, load
from trivet.lab.dataset_types import Dataset
from trivet.lab.originals import IMPORTERS

HOUSE = "house"


def find_dataset(name: str) -> Dataset:
    """The dataset of that name: `house`, a folder, or what `trivet lab import` has put on the shelf."""
    if name == HOUSE:
        return house()
    if Path(name).is_dir():
        return load(name)
    imported = shelf_place(name)
    if imported.is_dir():
        return load(imported, allow_unanswerable=True)  # as the originals have them; measuring leaves them out
    if name in IMPORTERS:
        raise InvalidInput(f"{name!r} is not imported yet. Say `trivet lab import {name} --data FOLDER` first.")
    raise InvalidInput(
        f"{name}: there is no such folder, and no dataset of that name. Give a folder with corpus.jsonl, queries.jsonl "
        f"and qrels.tsv, `{HOUSE}`, or a collection to import: {', '.join(IMPORTERS)}."
    )


def shelf_place(name: str) -> Path:
    """The folder an imported collection is kept in. Only the last part counts: a name leads nowhere else."""
    return cache_folder() / "datasets" / (Path(name).name or "-")
