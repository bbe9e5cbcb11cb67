"""Concepts merge spellings, count visible memories, and exclude ordinary words."""

from __future__ import annotations

import pytest

from support.store_fixtures import Opened
from trivet import InvalidInput, Trivet
from trivet.types import Concept


@pytest.fixture
def trivet(open_trivet: Opened) -> Trivet:
    memory = open_trivet()
    memory.remember("We met Li Hua in Berlin.", scope="acme", tags=["travel"], id=_id(1))
    memory.remember(
        "The visit of LiHua to Berlin cost much.", scope="acme", created_at="2024-05-05", id=_id(2)
    )
    memory.remember(
        "Yesterday Li Hua fixed E_CONN_4012 in src/pool.py.", scope="acme/shop", id=_id(3)
    )
    memory.remember("The office of Globex is in Rome.", scope="globex", id=_id(4))
    memory.drain()
    return memory


def _id(number: int) -> str:
    return f"01997e00-0000-7000-8000-{number:012}"


def by_label(trivet: Trivet, **options: object) -> dict[str, Concept]:
    return {concept.label: concept for concept in trivet.concepts(**options).concepts}  # type: ignore[arg-type]


def test_spellings_of_one_name_are_one_concept(trivet: Trivet) -> None:
    found = by_label(trivet)["Li Hua"]
    assert (found.name, found.memories, found.kind) == ("lihua", 3, "name")
    assert found.aliases == ("LiHua",)


def test_sort_by_mentions_or_name(trivet: Trivet) -> None:
    page = trivet.concepts()
    counts = [concept.memories for concept in page.concepts]
    assert counts == sorted(counts, reverse=True)
    assert page.concepts[0].label == "Li Hua"
    names = [concept.name for concept in trivet.concepts(sort="name").concepts]
    assert names == sorted(names)
    assert len(names) == page.total


def test_pages_do_not_overlap_and_total_is_constant(trivet: Trivet) -> None:
    whole = trivet.concepts()
    pages = [trivet.concepts(limit=2, offset=offset) for offset in range(0, whole.total, 2)]
    assert [concept for page in pages for concept in page.concepts] == list(whole.concepts)
    assert {page.total for page in pages} == {whole.total}
    beyond = trivet.concepts(offset=whole.total)
    assert (beyond.concepts, beyond.total) == ((), whole.total)


def test_part_of_a_name_matches_in_any_spelling(trivet: Trivet) -> None:
    for text in ("li hua", "LIHUA", "ihu", "Li-Hua's"):
        assert [concept.label for concept in trivet.concepts(text).concepts] == ["Li Hua"], text
    assert trivet.concepts("nowhere").total == 0


def test_text_without_letters_is_refused(trivet: Trivet) -> None:
    with pytest.raises(InvalidInput, match="no letter or digit"):
        trivet.concepts("!?")


def test_filter_by_kind(trivet: Trivet) -> None:
    assert [concept.label for concept in trivet.concepts(kind="code").concepts] == ["E_CONN_4012"]
    assert [concept.label for concept in trivet.concepts(kind="tag").concepts] == ["travel"]
    assert {concept.kind for concept in trivet.concepts(kind="path").concepts} == {"path"}


def test_counts_follow_the_filter(trivet: Trivet) -> None:
    assert by_label(trivet, scope="acme/shop")["Li Hua"].memories == 1
    assert "Globex" not in by_label(trivet, scope="acme")
    assert by_label(trivet, scope="globex").keys() == {"Globex", "Rome"}
    assert by_label(trivet, created_before="2025-01-01")["LiHua"].aliases == ()
    assert by_label(trivet, tags=["travel"])["Berlin"].memories == 1


def test_spellings_outside_the_filter_are_hidden(trivet: Trivet) -> None:
    trivet.remember("We sell to LIHUA, to LIHUA and to LIHUA.", scope="globex")
    trivet.drain()
    assert by_label(trivet, scope="acme")["Li Hua"].aliases == ("LiHua",)
    assert "LIHUA" in by_label(trivet)["Li Hua"].aliases


def test_capital_at_sentence_start_is_not_a_name(trivet: Trivet) -> None:
    for number in range(5):
        trivet.remember(f"Bananas are yellow, said number {number}.")
    trivet.drain()
    assert trivet.concepts("bananas").total == 0
    trivet.remember("We like Bananas here.")
    trivet.drain()
    assert (
        trivet.concepts("bananas").total == 0
    )  # Once within a sentence and five times at the start: still a word.
    trivet.remember("Do they like Bananas there?")
    trivet.drain()
    (banana,) = trivet.concepts("bananas").concepts
    assert banana.memories == 7


def test_forgotten_and_sensitive_memories_leave_no_concept(trivet: Trivet) -> None:
    trivet.forget(_id(4))
    trivet.edit(_id(3), sensitive=True)
    trivet.drain()
    labels = by_label(trivet)
    assert not {"Globex", "Rome", "E_CONN_4012"} & labels.keys()
    assert labels["Li Hua"].memories == 2
    trivet.restore(_id(4))
    trivet.drain()
    assert "Globex" in by_label(trivet)


def test_pending_memories_are_counted(trivet: Trivet) -> None:
    assert trivet.concepts().not_in_graph == 0
    trivet.remember_many(
        [{"content": "We met Sandra in Lima."}]
    )  # Bulk writes are left to the worker.
    page = trivet.concepts()
    assert (page.not_in_graph, trivet.stats().not_in_graph) == (1, 1)
    assert trivet.recall("Lima").health.not_in_graph == 1
    assert "Sandra" not in by_label(trivet)
    trivet.drain()
    assert "Sandra" in by_label(trivet)
    assert (trivet.concepts().not_in_graph, trivet.recall("Lima").health.not_in_graph) == (0, 0)


def test_reindex_rebuilds_the_same_graph(trivet: Trivet) -> None:
    before = trivet.concepts()
    trivet.reindex(lexical=False, vectors=False, graph=True)
    assert trivet.concepts() == before
    assert trivet.stats().not_in_graph == 0
    assert all(finding.ok for finding in trivet.doctor())
