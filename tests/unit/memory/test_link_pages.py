"""A page of links ranks behind the notes it lists and keeps its place without them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trivet import Trivet
from trivet.memory.answer.choose import names_on_link_page
from trivet.types import Memory

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)
PAGE = "\n".join(
    [
        "## docker prune images",
        "",
        "* [Prune docker images](https://example.org/docker/prune.md) - 2020-04-19",
        "* [Prune docker images fast](fast.md)",
        "- [[Docker networks|networks]]",
        "1. [Prune all docker images](all.md)",
    ]
)


def ranked(trivet: Trivet, query: str) -> list[str]:
    return [hit.id for hit in trivet.recall(query).hits]


def test_link_page_ranks_behind_the_note_it_lists(trivet: Trivet) -> None:
    page_fields = {"content": PAGE, "title": "Docker: prune images"}
    note_fields = {
        "content": "Old images fill the disk. Run docker image prune.",
        "title": "Prune docker images",
    }
    page, note = (one.id for one in trivet.remember_many([page_fields, note_fields]))
    hits = trivet.recall("prune docker images").hits
    assert [hit.id for hit in hits] == [note, page]
    assert hits[1].why.yields_to == (note,)
    assert hits[0].score >= hits[1].score


def test_link_page_keeps_its_place_without_listed_notes(trivet: Trivet) -> None:
    page = trivet.remember(PAGE, title="Docker: prune images").id
    trivet.remember("Plums want pruning in July; images of docker plums help.", title="Plums")
    assert ranked(trivet, "prune docker images")[0] == page


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "Docker networks: Bridges"},  # a section of a listed note
        {"source": "notes/docker/prune.md"},  # matched by file name
    ],
)
def test_listed_note_is_known_by_title_or_file(trivet: Trivet, fields: dict[str, Any]) -> None:
    page = trivet.remember(PAGE, title="Docker: prune images, networks").id
    note = trivet.remember("docker prune images networks are pruned too", **fields).id
    ids = ranked(trivet, "prune docker images networks")
    assert ids.index(note) < ids.index(page)


def test_stored_link_counts_as_listing(trivet: Trivet) -> None:
    page_fields = {"content": PAGE, "title": "Docker: prune images"}
    note_fields = {"content": "How to prune docker images of any kind.", "title": "Cleaning"}
    page, note = (one.id for one in trivet.remember_many([page_fields, note_fields]))
    assert ranked(trivet, "prune docker images")[0] == page
    trivet.link(page, "see-also", note)
    assert ranked(trivet, "prune docker images")[0] == note


@pytest.mark.parametrize(
    ("content", "is_page"),
    [
        (PAGE, True),
        ("| [a](a.md) | one |\n| [b](b.md) | two |\n| [c](c.md) | three |", True),
        ("https://a.example/x\nhttps://b.example/y\n- <https://c.example/z>", True),
        ("- [a](a.md) - 2020-04-19\n- [b](b.md)", True),
        ("[Ana](ana.md) leads the shop team since May.", False),  # a fact that starts with a link
        ("Read [a](a.md), [b](b.md) and [c](c.md): they say how the harbour is run.", False),
        ("\n".join(["- [a](a.md)"] * 3 + ["A sentence of prose about the harbour."] * 3), False),
    ],
)
def test_link_pages_are_recognized(content: str, is_page: bool) -> None:
    memory = Memory(id="x", content=content, created_at=MOMENT, updated_at=MOMENT)
    assert bool(names_on_link_page(memory)) is is_page


def test_brackets_are_parsed_in_linear_time() -> None:
    for text in ("[" * 32_000, "[[" * 16_000 + "](", "[x](" * 8_000, "- " * 16_000 + "://" * 9):
        memory = Memory(id="x", content=text, created_at=MOMENT, updated_at=MOMENT)
        assert names_on_link_page(memory) == frozenset()
