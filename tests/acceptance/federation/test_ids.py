"""Ids of a system map to documents: one document is one hit, and unknown ids keep their name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trivet import Trivet

from .conftest import Opened
from .systems import health_of, printing


def sections(memory: Trivet) -> list[str]:
    """A file of three parts, as after an ingest."""
    parts = [
        ("Keys are in the blue box.", 1, 4),
        ("The mat lies before the door.", 5, 9),
        ("Lamps.", 10, 12),
    ]
    return [
        memory.remember(text, source="notes/house.md", start_line=start, end_line=end).id
        for text, start, end in parts
    ]


def test_document_from_two_systems_and_the_store_is_one_hit(federation: Opened) -> None:
    memory = federation(
        one=printing([{"id": "notes/house.md"}]),
        two=printing([{"id": "notes/house.md", "score": 3}]),
    )
    memory.remember("The key is in the blue box.", source="notes/house.md")
    answer = memory.recall("blue box", federated=True)
    (hit,) = answer.hits
    assert answer.foreign == ()
    assert {leg for leg, part in hit.why.legs.items() if part.rank == 1} == {
        "lexical",
        "one",
        "two",
    }


def test_document_from_two_systems_is_one_foreign_hit(federation: Opened) -> None:
    memory = federation(
        one=printing([{"id": "file:///home/me/a%20b.md", "text": "as one says"}]),
        two=printing([{"id": "/home/me/a b.md", "text": "as two says"}]),
    )
    (hit,) = memory.recall("x", federated=True).foreign
    assert (hit.id, hit.systems, hit.text) == ("/home/me/a b.md", ("one", "two"), "as one says")


def test_line_selects_the_part_of_a_document(federation: Opened) -> None:
    memory = federation(grep=printing([{"id": "notes/house.md", "line": 11}]))
    _, mat, lamps = sections(memory)
    answer = memory.recall("mat", federated=True)
    assert {hit.id: hit.why.legs["grep"].rank for hit in answer.hits} == {mat: None, lamps: 1}


def test_without_a_line_the_best_ranked_part_is_used(federation: Opened) -> None:
    memory = federation(files=printing([{"id": "notes/house.md"}]))
    _, mat, _ = sections(memory)
    (hit,) = memory.recall("mat", federated=True).hits
    assert (hit.id, hit.why.legs["files"].rank) == (mat, 1)


def test_document_found_only_by_a_system_is_a_memory(federation: Opened) -> None:
    memory = federation(files=printing([{"id": "notes/house.md"}]))
    keys, *_ = sections(memory)
    answer = memory.recall("wardrobe", federated=True)
    assert [hit.id for hit in answer.hits] == [keys]
    assert answer.foreign == ()


def test_memory_can_be_named_by_its_own_id(federation: Opened) -> None:
    memory = federation()
    keys, *_ = sections(memory)
    again = federation(other=printing([{"id": keys}]))
    assert [hit.id for hit in again.recall("wardrobe", federated=True).hits] == [keys]


@pytest.mark.parametrize("suffix", [".tsv", ".json"])
def test_id_map_is_reloaded_when_it_changes(
    federation: Opened, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"map{suffix}"

    def write(**known: str) -> None:
        lines = "".join(f"{id}\t{uri}\n" for id, uri in known.items())
        fresh = file.with_name("fresh")
        fresh.write_text(json.dumps(known) if suffix == ".json" else lines)
        fresh.replace(file)

    write(doc7="notes/garden.md")
    memory = federation(index=printing([{"id": "doc7"}, {"id": "doc8"}], map=str(file)))
    house = memory.remember("The key is in the blue box.", source="notes/house.md").id
    answer = memory.recall("wardrobe", federated=True)
    assert [(hit.id, hit.systems) for hit in answer.foreign] == [
        ("notes/garden.md", ("index",)),
        ("doc8", ("index",)),
    ]
    assert "index: 1 of its hits not in its map, kept under their own ids" in answer.health.notes
    write(doc7="notes/house.md", doc8="notes/garden.md")
    answer = memory.recall("wardrobe", federated=True)
    assert [hit.id for hit in answer.hits] == [house]
    assert [hit.id for hit in answer.foreign] == ["notes/garden.md"]


@pytest.mark.parametrize("text", ["doc7 notes/house.md\n", "doc7\t\n", None])
def test_unreadable_id_map_disables_the_system(
    federation: Opened, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "map.tsv"
    if text is not None:
        file.write_text(text)
    health = health_of(
        federation(index=printing([{"id": "doc7"}], map=str(file))).recall("x", federated=True),
        "index",
    )
    assert not health.answered
    assert "its id map cannot be read" in (health.reason or "")
    assert str(file) not in (health.reason or ""), (
        "only the owner learns its path, from `trivet doctor`"
    )


def test_longest_prefix_is_rewritten_first(federation: Opened) -> None:
    rewrite = {"/home/me/": "me/", "/home/me/notes/": "notes/"}
    memory = federation(
        files=printing(
            [{"id": "/home/me/notes/house.md"}, {"id": "/home/me/x.md"}], rewrite=rewrite
        )
    )
    house = memory.remember("The key is in the blue box.", source="notes/house.md").id
    answer = memory.recall("wardrobe", federated=True)
    assert [hit.id for hit in answer.hits] == [house]
    assert [hit.id for hit in answer.foreign] == ["me/x.md"]


def test_numeric_ids_of_two_systems_are_two_documents(federation: Opened) -> None:
    memory = federation(
        one=printing([{"id": 12, "text": "a"}]), two=printing([{"id": 12, "text": "b"}])
    )
    answer = memory.recall("x", federated=True)
    assert sorted((hit.id, hit.systems, hit.text) for hit in answer.foreign) == [
        ("12", ("one",), "a"),
        ("12", ("two",), "b"),
    ]
