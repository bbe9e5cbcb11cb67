"""A sensitive memory is never embedded or sent, and masked unless revealed."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from support.store_fixtures import Opened
from support.word_embedder import WordEmbedder
from trivet import Trivet
from trivet.types import Memory

SECRET = "hunter2canary"
TEXT = f"The vault password is {SECRET} for the billing door."


@pytest.fixture
def secret(hybrid: Trivet) -> Memory:
    hybrid.remember("A harmless note about the garden door.")
    id = hybrid.remember(
        TEXT,
        title=f"Title {SECRET}",
        expanded_keywords=[f"{SECRET}s"],
        source=f"file:///{SECRET}",
        sensitive=True,
    ).id
    hybrid.drain()
    return hybrid.get(id, reveal=True)


def encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def test_sensitive_memory_is_never_embedded_or_sent(
    hybrid: Trivet, secret: Memory, embedder: WordEmbedder
) -> None:
    hybrid.edit(secret.id, importance=0.9)
    hybrid.forget(secret.id)
    hybrid.restore(secret.id)
    hybrid.reindex()
    assert not [text for text in embedder.texts if SECRET in text]
    assert hybrid.stats().passages == 1
    assert hybrid.stats().not_embedded == 0
    assert all(finding.ok for finding in hybrid.doctor())


def test_sensitive_memory_is_found_by_its_words(hybrid: Trivet, secret: Memory) -> None:
    hits = {hit.id: hit for hit in hybrid.recall("billing vault password").hits}
    assert hits[secret.id].why.matched_words == ("billing", "vault", "password")
    assert hits[secret.id].why.legs["lexical"].rank == 1


ANSWERS: dict[str, Callable[[Trivet, str], object]] = {
    "recall": lambda trivet, id: trivet.recall("vault password"),
    "recall with a budget": lambda trivet, id: trivet.recall("vault password", token_budget=100),
    "get": lambda trivet, id: trivet.get(id),
    "list": lambda trivet, id: trivet.list(),
    "history": lambda trivet, id: trivet.history(id),
    "edit": lambda trivet, id: trivet.edit(id, importance=0.1),
    "forget": lambda trivet, id: trivet.forget(id),
    "why": lambda trivet, id: trivet.why_not("vault password", id),
    "why not": lambda trivet, id: trivet.why_not("garden", id),
    "stats": lambda trivet, id: trivet.stats(),
    "doctor": lambda trivet, id: trivet.doctor(),
    "near-duplicates": lambda trivet, id: trivet.remember(
        "The vault password is unknown for the billing door."
    ),
    "links": lambda trivet, id: trivet.link(trivet.remember("other").id, "see-also", id),
    "export": lambda trivet, id: list(trivet.export()),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_sensitive_memory_is_masked_in_every_answer(
    hybrid: Trivet, secret: Memory, name: str
) -> None:
    assert SECRET not in encoded(ANSWERS[name](hybrid, secret.id))


def test_sensitive_memory_is_masked_in_diffs_and_restores(hybrid: Trivet, secret: Memory) -> None:
    hybrid.edit(secret.id, content=f"Now it is {SECRET}x.")
    assert SECRET not in hybrid.diff(secret.id, 1, 2)
    assert SECRET in hybrid.diff(secret.id, 1, 2, reveal=True)
    assert SECRET not in encoded(hybrid.restore(secret.id, revision=1))


def test_near_duplicate_report_masks_sensitive_text(hybrid: Trivet, secret: Memory) -> None:
    (duplicate,) = hybrid.remember(
        "The vault password is unknown for the billing door."
    ).near_duplicates
    assert duplicate.id == secret.id


REVEALED: dict[str, Callable[[Trivet, str], object]] = {
    "recall": lambda trivet, id: trivet.recall("vault password", reveal=True),
    "get": lambda trivet, id: trivet.get(id, reveal=True),
    "list": lambda trivet, id: trivet.list(reveal=True),
    "history": lambda trivet, id: trivet.history(id, reveal=True),
    "export": lambda trivet, id: list(trivet.export(include_sensitive=True)),
}


@pytest.mark.parametrize("name", REVEALED)
def test_sensitive_memory_is_revealed_on_request(hybrid: Trivet, secret: Memory, name: str) -> None:
    assert SECRET in encoded(REVEALED[name](hybrid, secret.id))


def test_marking_later_hides_earlier_revisions(hybrid: Trivet, embedder: WordEmbedder) -> None:
    id = hybrid.remember(TEXT).id
    hybrid.drain()
    assert hybrid.stats().passages == 1
    assert SECRET not in encoded(hybrid.edit(id, sensitive=True))
    assert hybrid.stats().passages == 0
    assert SECRET not in encoded(hybrid.history(id))
    assert SECRET not in encoded(hybrid.recall("vault password"))
    embedder.texts.clear()
    assert SECRET not in encoded(hybrid.restore(id, revision=1))
    hybrid.drain()
    assert not [text for text in embedder.texts if SECRET in text]


def test_unmarking_does_not_reveal_earlier_revisions(hybrid: Trivet, secret: Memory) -> None:
    clean = "The password is in the vault."
    hybrid.edit(
        secret.id, content=clean, title=None, expanded_keywords=[], source=None, sensitive=False
    )
    assert SECRET not in encoded(hybrid.history(secret.id))
    assert SECRET not in encoded(list(hybrid.export()))
    assert SECRET in encoded(list(hybrid.export(include_sensitive=True)))
    hybrid.drain()
    assert hybrid.stats().not_embedded == 0


def test_export_counts_omitted_sensitive_memories(hybrid: Trivet, secret: Memory) -> None:
    header = json.loads(next(iter(hybrid.export())))
    assert (header["memories"], header["sensitive_left_out"]) == (1, 1)


def test_similar_sensitive_memories_are_not_collapsed(open_trivet: Opened) -> None:
    trivet = open_trivet()
    for mark in (".", "!"):
        trivet.remember(
            f"The old vault password of the house in the hills is long{mark}", sensitive=True
        )
    assert len(trivet.recall("old vault password").hits) == 2
