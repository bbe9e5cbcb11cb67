"""Datasets by name: the house set, any folder in the plain layout, and public test collections.

`trivet lab import` converts a collection from its original files and keeps the result in the cache. None of them is
part of the package: the caller, or TRIVET_DATA, names the folder that holds the originals.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from trivet.errors import InvalidInput
from trivet.lab.datasets import longmemeval
from trivet.lab.datasets import mixed_collections as mixed_stores
from trivet.lab.datasets.conversation_collections import read_lihua, read_lihua_with_unanswerable, read_locomo
from trivet.lab.datasets.dataset import Dataset
from trivet.lab.datasets.document_collections import (
    read_cosqa,
    read_cranfield,
    read_hotpotqa,
    read_musique,
    read_scifact,
)
from trivet.lab.datasets.plain_layout import collection, house, lab_folder, lives, load, mixed

ENVIRONMENT_VARIABLE = "TRIVET_DATA"
HOUSE = "house"
LIVES = "lives"
MIXED = "mixed"
HALVES = ("dev", "test")

IMPORTERS: Mapping[str, Callable[[Path], Dataset]] = {
    "cosqa": read_cosqa,
    "cranfield": read_cranfield,
    "hotpotqa": read_hotpotqa,
    "lihua": read_lihua,
    "lihua-unanswerable": read_lihua_with_unanswerable,
    "locomo": read_locomo,
    "locomo-sessions": mixed_stores.locomo_sessions,
    "mixed-dialogue": mixed_stores.dialogue,
    "mixed-everything": mixed_stores.everything,
    "mixed-passages": mixed_stores.passages,
    "musique": read_musique,
    "scifact": read_scifact,
    "sessions": mixed_stores.sessions,
}

# Too large to be held in memory: read from a file that the caller names, and written as it is read.
FROM_FILE: Mapping[str, longmemeval.By] = {"longmemeval": "turn", "longmemeval-sessions": "session"}


def find_dataset(name: str) -> Dataset:
    """The dataset of that name: `house`, a half of `mixed`, a folder, or a collection that was imported."""
    if name == HOUSE:
        return house()
    first, _, half = name.partition("/")
    if first == MIXED and half in HALVES:
        return mixed(half)
    if Path(name).is_dir():
        return load(name)
    imported = imported_folder(name)
    if imported.is_dir():
        return load(imported, allow_unanswerable=True)  # as the originals have them; measuring leaves them out
    if name in IMPORTERS or name in FROM_FILE:
        source = "FILE" if name in FROM_FILE else "--data FOLDER"
        raise InvalidInput(f"{name!r} is not imported yet. Say `trivet lab import {name} {source}` first.")
    raise InvalidInput(
        f"{name}: there is no such folder, and no dataset of that name. Give a folder with corpus.jsonl, queries.jsonl "
        f"and qrels.tsv, `{HOUSE}`, `{MIXED}/dev`, `{MIXED}/test`, or a collection to import: "
        f"{', '.join((*IMPORTERS, *FROM_FILE))}."
    )


def find_collection(name: str) -> tuple[Dataset, ...]:
    """Several stores: the packaged lives or a half of them, or a folder of datasets; else the one of that name."""
    first, _, half = name.partition("/")
    if first == LIVES and half in ("", *HALVES):
        return lives(half)
    return collection(name) if Path(name).is_dir() else (find_dataset(name),)


def imported_folder(name: str) -> Path:
    """The folder that keeps an imported collection. Only the last part of the name counts: it leads nowhere else."""
    return lab_folder() / "datasets" / (Path(name).name or "-")


def import_original(name: str, data_folder: Path | str | None = None) -> Dataset:
    """The collection of that name, read from below the data folder (TRIVET_DATA if none is given)."""
    if name not in IMPORTERS:
        raise InvalidInput(
            f"There is no importer for {name!r}. Known names: {', '.join(IMPORTERS)}; and {' and '.join(FROM_FILE)}, "
            f"which are read from a file: trivet lab import {next(iter(FROM_FILE))} FILE"
        )
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
