"""A concept whose own name no memory holds any more goes by a name that memories hold."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from support.opened import Opened
from support.triples_model import Held, knows, serving, states
from trivet import Trivet

SPELLED_OUT = "Geneva: the World Health Organization (WHO) is there."
SHORT = "The WHO sits in Geneva."


def names(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    found = {row[0] for row in connection.execute("SELECT name FROM concept")}
    connection.close()
    return found


def told(trivet: Trivet, *texts: str) -> list[str]:
    ids = []
    for text in texts:
        ids.append(trivet.remember(text).id)
        trivet.engine.worker.read_triples()
    return ids


def test_the_name_goes_with_the_last_memory_that_holds_it(
    open_trivet: Opened, path: Path, held: Held
) -> None:
    with serving(knows({"WHO": [states("WHO", "sits in", "Geneva")]})) as model:
        trivet = open_trivet(graph_llm=model.spec)
        first, _ = told(trivet, SPELLED_OUT, SHORT)
        assert "worldhealthorganization" in names(path), "as long as a memory holds it"
        trivet.purge(first)
        assert names(path) == {"who", "geneva"}
        assert [row[:3] for row in held()] == [("who", "sits in", "geneva")]


def test_a_name_that_is_taken_takes_over(open_trivet: Opened, path: Path, held: Held) -> None:
    """The rules know the other name as a concept of its own: mentions and statements move there."""
    statements = {
        "rockets": [states("Acme Corp", "builds", "rockets")],
        "Globex": [states("Acme Corporation", "buys", "Globex")],
    }
    with serving(knows(statements)) as model:
        trivet = open_trivet(graph_llm=model.spec)
        first, _ = told(trivet, "So Acme Corp builds rockets.", "So Acme Corporation buys Globex.")
        assert {row[0] for row in held()} == {"acmecorp"}
        trivet.purge(first)
        assert names(path) == {"acmecorporation", "globex"}
        assert [row[:3] for row in held()] == [("acmecorporation", "buys", "globex")]
        assert all(finding.ok for finding in trivet.doctor())


def test_what_the_rules_take_as_a_singular_keeps_its_name(
    open_trivet: Opened, path: Path, held: Held
) -> None:
    with serving(knows({"relays": [states("relays", "need", "Power")]})) as model:
        trivet = open_trivet(graph_llm=model.spec)
        trivet.remember("They need Power.", tags=["relays"])
        told(trivet, "The relays need Power.")
        assert names(path) == {"relay", "power"}
        assert [row[:3] for row in held()] == [("relay", "need", "power")]
