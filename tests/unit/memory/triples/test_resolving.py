"""Names resolve to known concepts; doubtful pairs are asked about once, or stay separate."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from support.store_fixtures import Opened
from support.triples_model import Held, knows, serving, states
from trivet import Trivet
from trivet.errors import EmbedderError
from trivet.graph.concepts import Triple
from trivet.memory.worker.triple_prompt import abbreviations, may_be_same_name
from trivet.memory.worker.triples import resolve
from trivet.models.embed.base import Embedder

Aliases = Callable[[], set[tuple[str, str]]]
CORP, CORPORATION = (
    "Acme Corp builds rockets for Nasa.",
    "Later the Acme Corporation bought Globex.",
)
DB, SECOND_DB = "The staging database is on Hetzner.", "Ines moved the staging DB to Frankfurt."
KNOWN = {
    "Acme Corp ": [states("Acme Corp", "builds for", "Nasa")],
    "Acme Corporation": [states("Acme Corporation", "buys", "Globex")],
    "staging database": [states("staging database", "is on", "Hetzner")],
    "staging DB": [states("staging DB", "is in", "Frankfurt")],
    "WHO": [states("WHO", "sits in", "Geneva")],
}


def read(trivet: Trivet, *texts: str) -> None:
    for text in texts:
        trivet.remember(text)
        trivet.engine.worker.read_triples()


def asked_pairs(bodies: list[str]) -> list[dict[str, Any]]:
    questions = [json.loads(json.loads(body)["messages"][1]["content"]) for body in bodies]
    return [pair for question in questions for pair in question.get("pairs", [])]


def test_nearly_equal_name_resolves_without_asking(
    open_trivet: Opened, held: Held, aliases: Aliases
) -> None:
    with serving(knows(KNOWN)) as model:
        trivet = open_trivet(graph_llm=model.spec)
        read(trivet, CORP, CORPORATION)
        assert asked_pairs(model.bodies) == []
        assert {row[0] for row in held()} == {"acmecorp"}
        assert ("acme corporation", "acmecorp") in aliases()


def test_two_similar_new_names_become_one(open_trivet: Opened, held: Held) -> None:
    with serving(knows(KNOWN)) as model:
        trivet = open_trivet(graph_llm=model.spec)
        trivet.remember_many([{"content": CORP}, {"content": CORPORATION}])
        trivet.engine.worker.read_triples()
        assert len(model.bodies) == 1
        assert len({row[0] for row in held()}) == 1


@pytest.mark.parametrize("same", [True, False])
def test_doubtful_name_is_asked_about_once(
    open_trivet: Opened, held: Held, aliases: Aliases, same: bool
) -> None:
    with serving(knows(KNOWN, same=same)) as model:
        trivet = open_trivet(graph_llm=model.spec)
        read(trivet, DB, SECOND_DB)
        (pair,) = asked_pairs(model.bodies)
        assert (pair["first"], pair["second"]) == ("staging DB", "staging database")
        assert pair["text"] == SECOND_DB
        assert {row[0] for row in held()} == (
            {"stagingdatabase"} if same else {"stagingdatabase", "stagingdb"}
        )
        read(trivet, "The staging DB in Frankfurt is slow.")
        assert len(asked_pairs(model.bodies)) == 1
        assert len({concept for form, concept in aliases() if form == "staging db"}) == 1


@pytest.mark.parametrize(
    "broken", [500, "no JSON", '{"same": "all"}', '{"same": [0, 2, -1, true, "1", 99]}', "[1]"]
)
def test_failed_answer_keeps_names_separate(
    open_trivet: Opened, held: Held, broken: str | int
) -> None:
    def answer(question: Any) -> str | int | None:
        return broken if "pairs" in question else knows(KNOWN)(question)

    with serving(answer) as model:
        trivet = open_trivet(graph_llm=model.spec)
        read(trivet, DB, SECOND_DB)
        assert len(asked_pairs(model.bodies)) == 1
        assert {row[0] for row in held()} == {"stagingdatabase", "stagingdb"}


class FailingEmbedder:
    def embed_documents(self, texts: Sequence[str]) -> Any:
        raise EmbedderError("it does not answer")


def test_missing_vectors_keep_names_separate(open_trivet: Opened) -> None:
    with serving(knows(KNOWN)) as model:
        trivet = open_trivet(graph_llm=model.spec)
        read(trivet, CORP)
        later = Triple(subject="Acme Corporation", relation="buys", object="Globex")
        silent = cast(Embedder, FailingEmbedder())
        ((kept,),) = resolve(
            trivet.engine.store.graph,
            silent,
            [(CORPORATION, [later])],
            lambda _: pytest.fail("asked"),
        )
        assert kept == later


def test_exhausted_budget_keeps_names_separate(open_trivet: Opened, held: Held) -> None:
    with serving(knows(KNOWN, same=True)) as model:
        trivet = open_trivet(graph_llm=model.spec)
        read(trivet, DB)
        used = trivet.engine.store.graph.spent()
        low_budget = open_trivet(graph_llm=model.spec, graph_llm_tokens_a_day=2 * used + 20)
        read(low_budget, SECOND_DB)
        assert asked_pairs(model.bodies) == []
        assert {row[0] for row in held()} == {"stagingdatabase", "stagingdb"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Postgres 15", "Postgres 16"),
        ("api-gateway", "api-gateway-2"),
        ("src/a/models.py", "src/b/models.py"),
        ("Mira", "Mira Kovac"),
        ("York", "New York"),
        ("Henry VII", "Henry VIII"),
        ("Chris Martin", "Martin Chris"),
        ("getUserName", "setUserName"),
    ],
)
def test_rules_separate_names_that_vectors_would_merge(one: str, other: str) -> None:
    assert not may_be_same_name(one, other)
    assert not may_be_same_name(other, one)


def test_abbreviation_spelled_out_in_its_memory(
    open_trivet: Opened, held: Held, aliases: Aliases
) -> None:
    with serving(knows(KNOWN)) as model:
        trivet = open_trivet(graph_llm=model.spec)
        read(
            trivet,
            "We met the World Health Organization (WHO) in Geneva.",
            "In Geneva, the WHO was closed.",
        )
        assert {row[0] for row in held()} == {"worldhealthorganization"}
        assert ("who", "worldhealthorganization") in aliases()
        assert asked_pairs(model.bodies) == []


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("the World Health Organization (WHO) says", [("WHO", "World Health Organization")]),
        ("WHO (World Health Organization) says", [("WHO", "World Health Organization")]),
        ("Department of the Interior (DI)", [("DI", "Department of the Interior")]),
        ("we met the whole office (WHO)", []),
        ("Acme Corp (NASA)", []),
        ("NASA (Houston)", []),
        ("(WHO)", []),
        ("A (B) C ((D))", []),
    ],
)
def test_initials_must_match(text: str, pairs: list[tuple[str, str]]) -> None:
    assert list(abbreviations(text)) == pairs


def test_concept_deleted_during_the_question_stays_deleted(open_trivet: Opened, path: Path) -> None:
    """Purge the other name's memory while the model compares the names."""
    ids: list[str] = []

    def answer(question: Any) -> str | int | None:
        if "pairs" in question:
            other.purge(ids[0])
        return knows(KNOWN, same=True)(question)

    with serving(answer) as model:
        trivet, other = open_trivet(graph_llm=model.spec), open_trivet()
        ids.append(trivet.remember(DB).id)
        trivet.engine.worker.read_triples()
        read(trivet, SECOND_DB)
        connection = sqlite3.connect(path)
        names = {row[0] for row in connection.execute("SELECT name FROM concept")}
        connection.close()
        assert "stagingdb" in names
        assert "stagingdatabase" not in names
