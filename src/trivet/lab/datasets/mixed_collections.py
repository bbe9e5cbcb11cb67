"""Stores of mixed length, made of the other collections: short texts beside long ones, as a real store has them.

In each public collection all texts have about one length, so none shows whether a ranking drowns short memories under
long ones. Here some texts are stored a second time as part of a long one: the transcript of a session beside its turns,
a note beside its passages. Who asks is served best by the short text (grade 2); the long one that holds it answers too
(grade 1). What is joined follows from a hash of ids, so a mixture is always the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from trivet.lab.datasets.conversation_collections import read_lihua, read_locomo
from trivet.lab.datasets.dataset import RELEVANT, Dataset, DatasetBuilder, Document, Query, relevant
from trivet.lab.datasets.document_collections import read_cosqa, read_hotpotqa, read_musique, read_scifact

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
    return _mixed("mixed-dialogue", source, {id: turns for id, turns in _sessions(source).items() if _drawn(id, 2)})


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
            grades = {f"{dataset.name}-{id}": grade for id, grade in dataset.grades[query.id].items()}
            gathering.ask(Query(id=f"{dataset.name}-{query.id}", text=query.text), grades)
    return gathering.dataset("together")


def _sample(dataset: Dataset) -> Dataset:
    """Some of the queries, what answers them, and other documents by the way."""
    answerable = [query for query in dataset.queries if query.id not in set(dataset.unanswerable)]
    queries = sorted(answerable, key=lambda query: _hash(query.id))[:QUERIES]
    judged = {id for query in queries for id in dataset.grades[query.id]}
    others = sorted((one.id for one in dataset.documents if one.id not in judged), key=_hash)[:DISTRACTORS]
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
