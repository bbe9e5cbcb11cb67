"""A concept whose name no memory holds anymore takes a name that memories hold."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from support.store_fixtures import Opened
from support.triples_model import Held, knows, serving, states
from trivet import Trivet

SPELLED_OUT = "Geneva: the World Health Organization (WHO) is there."
SHORT = "The WHO sits in Geneva."


def names(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    found = {row[0] for row in connection.execute("SELECT name FROM concept")}
    connection.close()
    return found


def remember_and_read(trivet: Trivet, *texts: str) -> list[str]:
    ids = []
    for text in texts:
        ids.append(trivet.remember(text).id)
        trivet.engine.worker.read_triples()
    return ids


def test_name_is_dropped_with_its_last_memory(open_trivet: Opened, path: Path, held: Held) -> None:
    with serving(knows({"WHO": [states("WHO", "sits in", "Geneva")]})) as model:
        trivet = open_trivet(graph_llm=model.spec)
        first, _ = remember_and_read(trivet, SPELLED_OUT, SHORT)
        assert "worldhealthorganization" in names(path), "while a memory holds the name"
        trivet.purge(first)
        assert names(path) == {"who", "geneva"}
        assert [row[:3] for row in held()] == [("who", "sits in", "geneva")]


def test_existing_name_takes_over_mentions_and_statements(
    open_trivet: Opened, path: Path, held: Held
) -> None:
    """The rules already know the other name as a separate concept."""
    statements = {
        "rockets": [states("Acme Corp", "builds", "rockets")],
        "Globex": [states("Acme Corporation", "buys", "Globex")],
    }
    with serving(knows(statements)) as model:
        trivet = open_trivet(graph_llm=model.spec)
        first, _ = remember_and_read(
            trivet, "So Acme Corp builds rockets.", "So Acme Corporation buys Globex."
        )
        assert {row[0] for row in held()} == {"acmecorp"}
        trivet.purge(first)
        assert names(path) == {"acmecorporation", "globex"}
        assert [row[:3] for row in held()] == [("acmecorporation", "buys", "globex")]
        assert all(finding.ok for finding in trivet.doctor())


def test_singular_form_is_kept(open_trivet: Opened, path: Path, held: Held) -> None:
    with serving(knows({"relays": [states("relays", "need", "Power")]})) as model:
        trivet = open_trivet(graph_llm=model.spec)
        trivet.remember("They need Power.", tags=["relays"])
        remember_and_read(trivet, "The relays need Power.")
        assert names(path) == {"relay", "power"}
        assert [row[:3] for row in held()] == [("relay", "need", "power")]
