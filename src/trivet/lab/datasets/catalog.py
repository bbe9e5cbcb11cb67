"""Stores of mixed length, made of the other collections: short texts beside long ones, as a real store has them.

In each public collection all texts have about one length, so none shows whether a ranking drowns short memories under
long ones. Here some texts are stored a second time as part of a long one: the transcript of a session beside its turns,
a note beside its passages. Who asks is served best by the short text (grade 2); the long one that holds it answers too
(grade 1). What is joined follows from a hash of ids, so a mixture is always the same.

Datasets by name: the house set, any folder in the plain layout, and public test collections.

`trivet lab import` converts a collection from its original files and keeps the result in the cache. None of them is
part of the package: the caller, or TRIVET_DATA, names the folder that holds the originals.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.datasets import longmemeval
from trivet.lab.datasets.conversation_collections import (
    read_lihua,
    read_lihua_with_unanswerable,
    read_locomo,
)
from trivet.lab.datasets.dataset import RELEVANT, Dataset, DatasetBuilder, Document, Query, relevant
from trivet.lab.datasets.document_collections import (
    read_cosqa,
    read_cranfield,
    read_hotpotqa,
    read_musique,
    read_scifact,
)
from trivet.lab.datasets.plain_layout import collection, house, lab_folder, lives, load, mixed

# Queries taken of a collection, and documents beside those that answer them.
QUERIES = 300
DISTRACTORS = 1_500
# How many passages a note holds.
RUNS = (2, 3, 5, 8, 12)
THE_TEXT, WITHIN_A_LONG_ONE = 2, 1

Parts = Mapping[str, Sequence[str]]


def dialogue(data_folder: Path) -> Dataset:
    """Conversations of LoCoMo by turns, and every other session as one transcript besides."""
    source = read_locomo(data_folder)
    return _mixed(
        "mixed-dialogue",
        source,
        {id: turns for id, turns in _sessions(source).items() if _drawn(id, 2)},
    )


def sessions(data_folder: Path) -> Dataset:
    """All transcripts of LoCoMo without the turns, in one store: long memories alone."""
    source = read_locomo(data_folder)
    mixed = _mixed("sessions", source, _sessions(source))
    turns = {document.id for document in source.documents}
    gathering = DatasetBuilder()
    for document in mixed.documents:
        if document.id not in turns:
            gathering.add(msgspec.structs.replace(document, scope=None))
    for query in mixed.queries:
        grades = {id: grade for id, grade in mixed.grades[query.id].items() if id not in turns}
        gathering.ask(msgspec.structs.replace(query, scope=None), grades)
    return gathering.dataset("sessions")


def locomo_sessions(data_folder: Path) -> Dataset:
    """LoCoMo with a session as a document, each asked within its conversation: how those count who store sessions."""
    source = read_locomo(data_folder)
    parts = _sessions(source)
    by_id = {document.id: document for document in source.documents}
    gathering = DatasetBuilder()
    for id, turns in parts.items():
        gathering.add(_one(id, [by_id[turn] for turn in turns]))
    holding = {turn: id for id, turns in parts.items() for turn in turns}
    for query in source.queries:
        gathering.ask(query, relevant(holding[turn] for turn in source.grades[query.id]))
    return gathering.dataset("locomo-sessions")


def passages(data_folder: Path) -> Dataset:
    """Passages of Wikipedia with questions over two and more of them; half of them stand in notes besides."""
    source = _sample(_together([read_musique(data_folder), read_hotpotqa(data_folder)]))
    ids = sorted((document.id for document in source.documents), key=_hash)
    ids = ids[: len(ids) // 2]
    notes: dict[str, Sequence[str]] = {}
    while ids:
        count = RUNS[_drawn(ids[0], len(RUNS))]
        notes[f"note-{ids[0]}"], ids = ids[:count], ids[count:]
    return _mixed("mixed-passages", source, notes)


def everything(data_folder: Path) -> Dataset:
    """One store with turns and transcripts, chats, abstracts and functions, and questions after all of them."""
    collections = (dialogue, read_lihua, read_scifact, read_cosqa)
    source = _together([_sample(read(data_folder)) for read in collections])
    return _mixed("mixed-everything", source, {})


def _sessions(source: Dataset) -> Parts:
    parts: dict[str, list[str]] = {}
    for document in source.documents:
        parts.setdefault(document.id.partition(":")[0], []).append(document.id)
    return parts


def _together(datasets: Sequence[Dataset]) -> Dataset:
    """One dataset without scopes; ids tell the collection that they come from."""
    gathering = DatasetBuilder()
    for dataset in datasets:
        for one in dataset.documents:
            gathering.add(Document(id=f"{dataset.name}-{one.id}", text=one.text, title=one.title))
        for query in dataset.queries:
            grades = {
                f"{dataset.name}-{id}": grade for id, grade in dataset.grades[query.id].items()
            }
            gathering.ask(Query(id=f"{dataset.name}-{query.id}", text=query.text), grades)
    return gathering.dataset("together")


def _sample(dataset: Dataset) -> Dataset:
    """Some of the queries, what answers them, and other documents by the way."""
    answerable = [query for query in dataset.queries if query.id not in set(dataset.unanswerable)]
    queries = sorted(answerable, key=lambda query: _hash(query.id))[:QUERIES]
    judged = {id for query in queries for id in dataset.grades[query.id]}
    others = sorted((one.id for one in dataset.documents if one.id not in judged), key=_hash)[
        :DISTRACTORS
    ]
    gathering = DatasetBuilder()
    for document in dataset.documents:
        if document.id in judged or document.id in set(others):
            gathering.add(document)
    for query in queries:
        gathering.ask(query, dataset.grades[query.id])
    return gathering.dataset(dataset.name)


def _mixed(name: str, source: Dataset, long: Parts) -> Dataset:
    """The documents, and long ones besides that hold several of them."""
    by_id = {document.id: document for document in source.documents}
    gathering = DatasetBuilder()
    for document in source.documents:
        gathering.add(document)
    for id, parts in long.items():
        gathering.add(_one(id, [by_id[part] for part in parts]))
    holding = {part: id for id, parts in long.items() for part in parts}
    for query in source.queries:
        relevant = [id for id, grade in source.grades[query.id].items() if grade >= RELEVANT]
        within = dict.fromkeys((holding[id] for id in relevant if id in holding), WITHIN_A_LONG_ONE)
        grades = within | dict.fromkeys(relevant, THE_TEXT) if long else source.grades[query.id]
        gathering.ask(query, grades)
    return gathering.dataset(name)


def _one(id: str, parts: Sequence[Document]) -> Document:
    text = "\n".join(f"{one.title}\n{one.text}\n" if one.title else one.text for one in parts)
    return Document(id=id, text=text, scope=parts[0].scope, created_at=parts[0].created_at)


def _drawn(id: str, count: int) -> int:
    return int(_hash(id)[:8], 16) % count


def _hash(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()


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
    "locomo-sessions": locomo_sessions,
    "mixed-dialogue": dialogue,
    "mixed-everything": everything,
    "mixed-passages": passages,
    "musique": read_musique,
    "scifact": read_scifact,
    "sessions": sessions,
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
        return load(
            imported, allow_unanswerable=True
        )  # as the originals have them; measuring leaves them out
    if name in IMPORTERS or name in FROM_FILE:
        source = "FILE" if name in FROM_FILE else "--data FOLDER"
        raise InvalidInput(
            f"{name!r} is not imported yet. Say `trivet lab import {name} {source}` first."
        )
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
        raise InvalidInput(
            f"Where are the originals? Give the folder, or set {ENVIRONMENT_VARIABLE} to it."
        )
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise InvalidInput(
            f"{folder}: there is no such folder. It should hold the originals, one folder each."
        )
    return folder
