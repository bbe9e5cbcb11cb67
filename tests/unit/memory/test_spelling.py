"""Misspelled queries find memories in a store without vectors."""

from __future__ import annotations

from trivet import Trivet
from trivet.types import Caller, Right

READ: frozenset[Right] = frozenset(("read", "write"))


def caller(user: str) -> Caller:
    return Caller(tenant="default", user=user, role="writer", key="k", rights=READ)


def test_misspelling_is_corrected_and_reported(trivet: Trivet) -> None:
    meant = trivet.remember("The secrets lie in the vault of the warehouse.").id
    trivet.remember("The warehouse closes at six.")
    answer = trivet.recall("vualt secrts")
    assert answer.hits[0].id == meant
    assert answer.query == "vualt secrts"
    assert answer.health.notes == (
        'no memory holds "vualt"; searched for "vault"',
        'no memory holds "secrts"; searched for "secrets"',
    )


def test_stored_word_is_not_corrected(trivet: Trivet) -> None:
    trivet.remember("The harbor of Galveston is closed.")
    british = trivet.remember("The harbour of Bremen is open.").id
    answer = trivet.recall("harbour")
    assert [hit.id for hit in answer.hits] == [british]
    assert answer.health.notes == ()


def test_distinct_word_is_not_corrected(trivet: Trivet) -> None:
    trivet.remember("The price of the harbour tour is eighty euros.")
    assert trivet.recall("Which film won the prize?").health.notes == ()
    assert trivet.recall("Is Harvour closed?").health.notes == (
        'no memory holds "Harvour"; searched for "harbour"',
    )


def test_identifiers_are_not_corrected(trivet: Trivet) -> None:
    trivet.remember("E_CONN_4012 means that the relay is down; see relay_port and relay2.")
    for query in ("E_CONN_4013", "relay_pors", "relay3"):
        assert trivet.recall(query).health.notes == (), query


def test_most_frequent_candidate_is_chosen(trivet: Trivet) -> None:
    trivet.remember("The garden needs water.")
    trivet.remember("The garden was sold.")
    trivet.remember("Garded, the dog barks.")
    assert trivet.recall("gardej").health.notes == (
        'no memory holds "gardej"; searched for "garden"',
    )


def test_words_of_invisible_memories_are_not_disclosed(trivet: Trivet) -> None:
    for user in ("ana", "bo"):
        trivet.engine.store.accounts.add_user(user, "writer")
    trivet.acting_as(caller("ana")).remember("The password is wintergarden.")
    trivet.remember("The alarm is called nightingale.", sensitive=True)
    assert trivet.acting_as(caller("bo")).recall("wintergardne").health.notes == ()
    assert trivet.recall("nightinagle").health.notes == ()


def test_why_not_uses_the_correction(trivet: Trivet) -> None:
    meant = trivet.remember("The secrets lie in the vault.").id
    assert trivet.why_not("vualt", id=meant).rank == 1
