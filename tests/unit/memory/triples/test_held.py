"""What holds from when to when in the light of all that memories say: contradicted, superseded, reopened."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from support.opened import Opened
from support.triples_model import Held, knows, serving, states
from trivet import Trivet

BERLIN, PARIS, ROME = (
    states("Mira", "lives in", city, single=True) for city in ("Berlin", "Paris", "Rome")
)
CITIES = {"Berlin": [BERLIN], "Paris": [PARIS], "Rome": [ROME]}


class Told:
    """A store whose language model has read what was told."""

    def __init__(self, trivet: Trivet) -> None:
        self.trivet = trivet

    def tell(self, text: str, since: str, **more: Any) -> str:
        id = self.trivet.remember(text, valid_from=since, **more).id
        self.read()
        return id

    def read(self) -> None:
        self.trivet.engine.worker.read_triples()


@pytest.fixture
def told(open_trivet: Opened) -> Any:
    with serving(knows(CITIES)) as model:
        yield Told(open_trivet(graph_llm=model.spec))


def cities(held: Held) -> list[tuple[str, str, str | None]]:
    return [(row[2], row[3], row[4]) for row in held()]


def test_a_later_statement_ends_the_earlier_at_its_beginning(told: Told, held: Held) -> None:
    told.tell("Mira is in Berlin.", "2020-01-01")
    told.tell("Mira is in Paris.", "2022-01-01")
    assert cities(held) == [("berlin", "2020-01-01", "2022-01-01"), ("paris", "2022-01-01", None)]


def test_a_way_back_is_no_contradiction_of_the_first_stay(told: Told, held: Held) -> None:
    for city, since in (
        ("Berlin", "2020-01-01"),
        ("Paris", "2022-01-01"),
        ("Berlin", "2024-01-01"),
    ):
        told.tell(f"Mira is in {city}.", since)
    assert cities(held) == [
        ("berlin", "2020-01-01", "2022-01-01"),
        ("paris", "2022-01-01", "2024-01-01"),
        ("berlin", "2024-01-01", None),
    ]


def test_the_same_said_twice_contradicts_nothing(told: Told, held: Held) -> None:
    told.tell("Mira is in Berlin.", "2020-01-01")
    told.tell("Still in Berlin, Mira says.", "2021-01-01")
    assert {end for _, _, end in cities(held)} == {None}


@pytest.mark.parametrize("undo", ["forget", "purge"])
def test_without_the_later_memory_the_earlier_holds_again(
    told: Told, held: Held, undo: str
) -> None:
    told.tell("Mira is in Berlin.", "2020-01-01")
    later = told.tell("Mira is in Paris.", "2022-01-01")
    getattr(told.trivet, undo)(later)
    assert cities(held) == [("berlin", "2020-01-01", None)]
    if undo == "forget":
        told.trivet.restore(later)
        told.read()
        assert cities(held) == [
            ("berlin", "2020-01-01", "2022-01-01"),
            ("paris", "2022-01-01", None),
        ]


def test_a_superseding_memory_ends_what_the_superseded_said(told: Told, held: Held) -> None:
    old = told.tell("Mira is in Berlin.", "2020-01-01")
    new = told.tell("Mira moved away.", "2023-05-01")
    told.trivet.link(new, "supersedes", old)
    assert cities(held) == [("berlin", "2020-01-01", "2023-05-01")]
    told.trivet.forget(new)
    assert cities(held) == [("berlin", "2020-01-01", None)]
    told.trivet.restore(new)
    assert cities(held) == [("berlin", "2020-01-01", "2023-05-01")]
    told.trivet.unlink(new, "supersedes", old)
    assert cities(held) == [("berlin", "2020-01-01", None)]


def test_what_runs_out_with_its_memory(told: Told, held: Held) -> None:
    told.tell("Mira is in Berlin.", "2020-01-01", valid_to="2020-06-01")
    assert cities(held) == [("berlin", "2020-01-01", "2020-06-01")]


def test_the_earliest_end_counts_and_says_by_which_memory(
    told: Told, held: Held, path: Path
) -> None:
    old = told.tell("Mira is in Berlin.", "2020-01-01")
    told.tell("Mira is in Rome.", "2024-01-01")
    first = told.tell("Mira is in Paris.", "2022-01-01")
    new = told.tell("Mira moved away.", "2023-05-01")
    told.trivet.link(new, "supersedes", old)
    connection = sqlite3.connect(path)
    row = connection.execute(
        "SELECT substr(h.valid_to, 1, 10), m.id, h.known_at = s.recorded_at "
        "FROM held AS h JOIN memory AS m ON m.key = h.ended_by"
        " JOIN statement AS s ON s.memory = m.key WHERE substr(h.valid_from, 1, 4) = '2020'"
    ).fetchone()
    connection.close()
    assert row == ("2022-01-01", first, 1)


def test_what_ended_before_it_was_told_ends_nothing(open_trivet: Opened, held: Held) -> None:
    """ "Until 2015" is told in 2024: it began nobody knows when, and does not contradict where she lives since 2020."""
    past = {**BERLIN, "valid_to": "2015"}
    with serving(knows({"Berlin": [past], "Paris": [PARIS]})) as model:
        told = Told(open_trivet(graph_llm=model.spec))
        told.tell("Mira is in Paris.", "2020-01-01")
        told.tell("Mira was in Berlin until 2015.", "2024-01-01")
        assert cities(held) == [
            ("berlin", "0001-01-01", "2015-01-01"),
            ("paris", "2020-01-01", None),
        ]


def test_what_may_hold_together_does(open_trivet: Opened, held: Held) -> None:
    likes = {name: [states("Mira", "likes", name)] for name in ("Tea", "Coffee")}
    with serving(knows(likes)) as model:
        told = Told(open_trivet(graph_llm=model.spec))
        told.tell("Mira likes Tea.", "2020-01-01")
        told.tell("Mira likes Coffee.", "2022-01-01")
        assert {row[4] for row in held()} == {None}


def test_two_that_begin_at_once_are_both_kept(told: Told, held: Held) -> None:
    told.tell("Mira is in Berlin.", "2020-01-01")
    told.tell("Mira is in Paris.", "2020-01-01")
    assert {end for _, _, end in cities(held)} == {None}


def test_everything_said_stays_stored(told: Told, path: Path) -> None:
    told.tell("Mira is in Berlin.", "2020-01-01")
    told.tell("Mira is in Paris.", "2022-01-01")
    assert told.trivet.stats().statements == 2
