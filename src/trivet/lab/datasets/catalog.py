"""Datasets by name: packaged sets, folders in the plain layout, and public test collections.

The mixed collections store some short texts a second time inside a longer one, which shows whether
a ranking buries short memories under long ones.
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

# Sample sizes per source collection.
QUERIES = 300
DISTRACTORS = 1_500
# Possible numbers of passages in a note.
RUNS = (2, 3, 5, 8, 12)
THE_TEXT, WITHIN_A_LONG_ONE = 2, 1

Parts = Mapping[str, Sequence[str]]


def mixed_dialogue(data_folder: Path) -> Dataset:
    """Return LoCoMo by turns, plus every other session as one transcript."""
    source = read_locomo(data_folder)
    return _with_long_texts(
        "mixed-dialogue",
        source,
        {id: turns for id, turns in _sessions(source).items() if _bucket(id, 2)},
    )


def locomo_transcripts(data_folder: Path) -> Dataset:
    """Return all LoCoMo transcripts without the turns, in one store."""
    source = read_locomo(data_folder)
    mixed = _with_long_texts("sessions", source, _sessions(source))
    turns = {document.id for document in source.documents}
    builder = DatasetBuilder()
    for document in mixed.documents:
        if document.id not in turns:
            builder.add(msgspec.structs.replace(document, scope=None))
    for query in mixed.queries:
        grades = {id: grade for id, grade in mixed.grades[query.id].items() if id not in turns}
        builder.ask(msgspec.structs.replace(query, scope=None), grades)
    return builder.dataset("sessions")


def locomo_sessions(data_folder: Path) -> Dataset:
    """Return LoCoMo with one document per session."""
    source = read_locomo(data_folder)
    parts = _sessions(source)
    by_id = {document.id: document for document in source.documents}
    builder = DatasetBuilder()
    for id, turns in parts.items():
        builder.add(_join(id, [by_id[turn] for turn in turns]))
    holding = {turn: id for id, turns in parts.items() for turn in turns}
    for query in source.queries:
        builder.ask(query, relevant(holding[turn] for turn in source.grades[query.id]))
    return builder.dataset("locomo-sessions")


def mixed_passages(data_folder: Path) -> Dataset:
    """Return Wikipedia passages with multi-hop questions, half of them also in notes."""
    source = _sample(_merge([read_musique(data_folder), read_hotpotqa(data_folder)]))
    ids = sorted((document.id for document in source.documents), key=_hash)
    ids = ids[: len(ids) // 2]
    notes: dict[str, Sequence[str]] = {}
    while ids:
        count = RUNS[_bucket(ids[0], len(RUNS))]
        notes[f"note-{ids[0]}"], ids = ids[:count], ids[count:]
    return _with_long_texts("mixed-passages", source, notes)


def mixed_everything(data_folder: Path) -> Dataset:
    """Return one unscoped store of turns, transcripts, chats, abstracts and functions."""
    collections = (mixed_dialogue, read_lihua, read_scifact, read_cosqa)
    source = _merge([_sample(read(data_folder)) for read in collections])
    return _with_long_texts("mixed-everything", source, {})


def _sessions(source: Dataset) -> Parts:
    parts: dict[str, list[str]] = {}
    for document in source.documents:
        parts.setdefault(document.id.partition(":")[0], []).append(document.id)
    return parts


def _merge(datasets: Sequence[Dataset]) -> Dataset:
    builder = DatasetBuilder()
    for dataset in datasets:
        for one in dataset.documents:
            builder.add(Document(id=f"{dataset.name}-{one.id}", text=one.text, title=one.title))
        for query in dataset.queries:
            grades = {
                f"{dataset.name}-{id}": grade for id, grade in dataset.grades[query.id].items()
            }
            builder.ask(Query(id=f"{dataset.name}-{query.id}", text=query.text), grades)
    return builder.dataset("together")


def _sample(dataset: Dataset) -> Dataset:
    answerable = [query for query in dataset.queries if query.id not in set(dataset.unanswerable)]
    queries = sorted(answerable, key=lambda query: _hash(query.id))[:QUERIES]
    judged = {id for query in queries for id in dataset.grades[query.id]}
    others = sorted((one.id for one in dataset.documents if one.id not in judged), key=_hash)[
        :DISTRACTORS
    ]
    builder = DatasetBuilder()
    for document in dataset.documents:
        if document.id in judged or document.id in set(others):
            builder.add(document)
    for query in queries:
        builder.ask(query, dataset.grades[query.id])
    return builder.dataset(dataset.name)


def _with_long_texts(name: str, source: Dataset, long: Parts) -> Dataset:
    by_id = {document.id: document for document in source.documents}
    builder = DatasetBuilder()
    for document in source.documents:
        builder.add(document)
    for id, parts in long.items():
        builder.add(_join(id, [by_id[part] for part in parts]))
    holding = {part: id for id, parts in long.items() for part in parts}
    for query in source.queries:
        relevant = [id for id, grade in source.grades[query.id].items() if grade >= RELEVANT]
        within = dict.fromkeys((holding[id] for id in relevant if id in holding), WITHIN_A_LONG_ONE)
        grades = within | dict.fromkeys(relevant, THE_TEXT) if long else source.grades[query.id]
        builder.ask(query, grades)
    return builder.dataset(name)


def _join(id: str, parts: Sequence[Document]) -> Document:
    text = "\n".join(f"{one.title}\n{one.text}\n" if one.title else one.text for one in parts)
    return Document(id=id, text=text, scope=parts[0].scope, created_at=parts[0].created_at)


def _bucket(id: str, count: int) -> int:
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
    "mixed-dialogue": mixed_dialogue,
    "mixed-everything": mixed_everything,
    "mixed-passages": mixed_passages,
    "musique": read_musique,
    "scifact": read_scifact,
    "sessions": locomo_transcripts,
}

# Too large to hold in memory: the caller names a file, which is imported as a stream.
FROM_FILE: Mapping[str, longmemeval.By] = {"longmemeval": "turn", "longmemeval-sessions": "session"}


def find_dataset(name: str) -> Dataset:
    if name == HOUSE:
        return house()
    first, _, half = name.partition("/")
    if first == MIXED and half in HALVES:
        return mixed(half)
    if Path(name).is_dir():
        return load(name)
    imported = imported_folder(name)
    if imported.is_dir():
        # The originals have unanswerable queries; measuring leaves them out.
        return load(imported, allow_unanswerable=True)
    if name in IMPORTERS or name in FROM_FILE:
        source = "FILE" if name in FROM_FILE else "--data FOLDER"
        raise InvalidInput(
            f"{name!r} is not imported yet. Run `trivet lab import {name} {source}` first."
        )
    raise InvalidInput(
        f"{name}: there is no such folder, and no dataset of that name. Give a folder with "
        f"corpus.jsonl, queries.jsonl and qrels.tsv, `{HOUSE}`, `{MIXED}/dev`, `{MIXED}/test`, or "
        f"a collection to import: {', '.join((*IMPORTERS, *FROM_FILE))}."
    )


def find_collection(name: str) -> tuple[Dataset, ...]:
    """Return the packaged lives, a folder of datasets, or one dataset."""
    first, _, half = name.partition("/")
    if first == LIVES and half in ("", *HALVES):
        return lives(half)
    return collection(name) if Path(name).is_dir() else (find_dataset(name),)


def imported_folder(name: str) -> Path:
    """Return an imported collection's folder; no name leads outside the cache."""
    return lab_folder() / "datasets" / (Path(name).name or "-")


def import_original(name: str, data_folder: Path | str | None = None) -> Dataset:
    """Import a collection from below the data folder (default: TRIVET_DATA)."""
    if name not in IMPORTERS:
        raise InvalidInput(
            f"There is no importer for {name!r}. Known names: {', '.join(IMPORTERS)}; and "
            f"{' and '.join(FROM_FILE)}, which are read from a file: "
            f"trivet lab import {next(iter(FROM_FILE))} FILE"
        )
    return IMPORTERS[name](find_data_folder(data_folder))


def find_data_folder(given: Path | str | None = None) -> Path:
    chosen = given or os.environ.get(ENVIRONMENT_VARIABLE)
    if not chosen:
        raise InvalidInput(
            f"No folder of original collections. Name it, or set {ENVIRONMENT_VARIABLE} to it."
        )
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise InvalidInput(
            f"{folder}: there is no such folder. It should hold the originals, one subfolder each."
        )
    return folder
