"""Validity periods of statements that are contradicted, superseded, or reopened."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from support.store_fixtures import Opened
from support.triples_model import Held, knows, serving, states
from trivet import Trivet

BERLIN, PARIS, ROME = (
    states("Mira", "lives in", city, single=True) for city in ("Berlin", "Paris", "Rome")
)
CITIES = {"Berlin": [BERLIN], "Paris": [PARIS], "Rome": [ROME]}


class ReadingStore:
    """A store whose language model reads every memory at once."""

    def __init__(self, trivet: Trivet) -> None:
        self.trivet = trivet

    def remember(self, text: str, since: str, **more: Any) -> str:
        id = self.trivet.remember(text, valid_from=since, **more).id
        self.read()
        return id

    def read(self) -> None:
        self.trivet.engine.worker.read_triples()


@pytest.fixture
def store(open_trivet: Opened) -> Any:
    with serving(knows(CITIES)) as model:
        yield ReadingStore(open_trivet(graph_llm=model.spec))


def cities(held: Held) -> list[tuple[str, str, str | None]]:
    return [(row[2], row[3], row[4]) for row in held()]


def test_later_statement_ends_the_earlier(store: ReadingStore, held: Held) -> None:
    store.remember("Mira is in Berlin.", "2020-01-01")
    store.remember("Mira is in Paris.", "2022-01-01")
    assert cities(held) == [("berlin", "2020-01-01", "2022-01-01"), ("paris", "2022-01-01", None)]


def test_returning_does_not_contradict_the_first_stay(store: ReadingStore, held: Held) -> None:
    for city, since in (
        ("Berlin", "2020-01-01"),
        ("Paris", "2022-01-01"),
        ("Berlin", "2024-01-01"),
    ):
        store.remember(f"Mira is in {city}.", since)
    assert cities(held) == [
        ("berlin", "2020-01-01", "2022-01-01"),
        ("paris", "2022-01-01", "2024-01-01"),
        ("berlin", "2024-01-01", None),
    ]


def test_repeated_statement_contradicts_nothing(store: ReadingStore, held: Held) -> None:
    store.remember("Mira is in Berlin.", "2020-01-01")
    store.remember("Still in Berlin, Mira says.", "2021-01-01")
    assert {end for _, _, end in cities(held)} == {None}


@pytest.mark.parametrize("undo", ["forget", "purge"])
def test_removing_the_later_memory_reopens_the_earlier(
    store: ReadingStore, held: Held, undo: str
) -> None:
    store.remember("Mira is in Berlin.", "2020-01-01")
    later = store.remember("Mira is in Paris.", "2022-01-01")
    getattr(store.trivet, undo)(later)
    assert cities(held) == [("berlin", "2020-01-01", None)]
    if undo == "forget":
        store.trivet.restore(later)
        store.read()
        assert cities(held) == [
            ("berlin", "2020-01-01", "2022-01-01"),
            ("paris", "2022-01-01", None),
        ]


def test_superseding_memory_ends_the_superseded_statements(store: ReadingStore, held: Held) -> None:
    old = store.remember("Mira is in Berlin.", "2020-01-01")
    new = store.remember("Mira moved away.", "2023-05-01")
    store.trivet.link(new, "supersedes", old)
    assert cities(held) == [("berlin", "2020-01-01", "2023-05-01")]
    store.trivet.forget(new)
    assert cities(held) == [("berlin", "2020-01-01", None)]
    store.trivet.restore(new)
    assert cities(held) == [("berlin", "2020-01-01", "2023-05-01")]
    store.trivet.unlink(new, "supersedes", old)
    assert cities(held) == [("berlin", "2020-01-01", None)]


def test_statement_expires_with_its_memory(store: ReadingStore, held: Held) -> None:
    store.remember("Mira is in Berlin.", "2020-01-01", valid_to="2020-06-01")
    assert cities(held) == [("berlin", "2020-01-01", "2020-06-01")]


def test_earliest_end_counts_and_names_its_memory(
    store: ReadingStore, held: Held, path: Path
) -> None:
    old = store.remember("Mira is in Berlin.", "2020-01-01")
    store.remember("Mira is in Rome.", "2024-01-01")
    first = store.remember("Mira is in Paris.", "2022-01-01")
    new = store.remember("Mira moved away.", "2023-05-01")
    store.trivet.link(new, "supersedes", old)
    connection = sqlite3.connect(path)
    row = connection.execute(
        "SELECT substr(h.valid_to, 1, 10), m.id, h.known_at = s.recorded_at "
        "FROM held AS h JOIN memory AS m ON m.key = h.ended_by"
        " JOIN statement AS s ON s.memory = m.key WHERE substr(h.valid_from, 1, 4) = '2020'"
    ).fetchone()
    connection.close()
    assert row == ("2022-01-01", first, 1)


def test_statement_already_ended_ends_nothing(open_trivet: Opened, held: Held) -> None:
    past = {**BERLIN, "valid_to": "2015"}
    with serving(knows({"Berlin": [past], "Paris": [PARIS]})) as model:
        store = ReadingStore(open_trivet(graph_llm=model.spec))
        store.remember("Mira is in Paris.", "2020-01-01")
        store.remember("Mira was in Berlin until 2015.", "2024-01-01")
        assert cities(held) == [
            ("berlin", "0001-01-01", "2015-01-01"),
            ("paris", "2020-01-01", None),
        ]


def test_compatible_statements_hold_together(open_trivet: Opened, held: Held) -> None:
    likes = {name: [states("Mira", "likes", name)] for name in ("Tea", "Coffee")}
    with serving(knows(likes)) as model:
        store = ReadingStore(open_trivet(graph_llm=model.spec))
        store.remember("Mira likes Tea.", "2020-01-01")
        store.remember("Mira likes Coffee.", "2022-01-01")
        assert {row[4] for row in held()} == {None}


def test_simultaneous_statements_are_both_kept(store: ReadingStore, held: Held) -> None:
    store.remember("Mira is in Berlin.", "2020-01-01")
    store.remember("Mira is in Paris.", "2020-01-01")
    assert {end for _, _, end in cities(held)} == {None}


def test_ended_statements_stay_stored(store: ReadingStore, path: Path) -> None:
    store.remember("Mira is in Berlin.", "2020-01-01")
    store.remember("Mira is in Paris.", "2022-01-01")
    assert store.trivet.stats().statements == 2
