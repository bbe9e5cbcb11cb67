"""Sealed secrets are deleted with their memories, and the audit record stays."""

from __future__ import annotations

import msgspec
import pytest

from support.stores import add, document, found, memory
from trivet.errors import Conflict, RetiredKey
from trivet.store.records import Entry
from trivet.store.relational.store import RelationalStore as Store
from trivet.types import Memory, Revision, Sealed

SEALED = Sealed(
    revision=1, field="content", kind="jwt", number=1, key="a", nonce=b"n" * 12, sealed=b"\x00\xff"
)


def sealed(number: int, key: str = "a") -> Sealed:
    return msgspec.structs.replace(SEALED, number=number, key=key)


def add_with(store: Store, *secrets: Sealed) -> Memory:
    one = memory("words [secret:jwt:1]")
    store.memories.add_many([Entry(one, document(one), (), secrets)])
    return one


def test_secrets_are_written_with_each_revision(store: Store) -> None:
    one = add_with(store, sealed(1))
    assert store.secrets.of(one.id) == (sealed(1),)
    store.memories.replace(one, document(one), "edit", [sealed(2)])
    assert store.secrets.of(one.id) == (sealed(1), sealed(2))


def test_refused_change_writes_no_secret(store: Store) -> None:
    one = add_with(store, sealed(1))
    late = msgspec.structs.replace(one, revision=7)
    with pytest.raises(Conflict):
        store.memories.replace(late, document(late), "edit", [sealed(2)])
    assert store.secrets.of(one.id) == (sealed(1),)


def test_unchanged_memory_stores_no_second_copy(store: Store) -> None:
    one = add_with(store, sealed(1))
    [added] = store.memories.add_many([Entry(one, document(one), (), (sealed(1),))])
    assert added.status == "unchanged"
    assert store.secrets.of(one.id) == (sealed(1),)


def test_purge_deletes_secrets_and_keeps_the_record(store: Store) -> None:
    one = add_with(store, sealed(1))
    store.audit.note("reveal", one.id, "revision 1: jwt")
    store.memories.purge(one.id)
    assert store.secrets.of(one.id) == ()
    assert store.secrets.not_under("b", 10) == ()
    [entry] = store.audit.noted(10)
    assert (entry.act, entry.memory, entry.detail) == ("reveal", one.id, "revision 1: jwt")


def test_secrets_are_found_by_key_and_sealed_again(store: Store) -> None:
    one, two = add_with(store, sealed(1), sealed(2)), add_with(store, sealed(1, "b"))
    waiting = store.secrets.not_under("b", 10)
    assert sorted(waiting, key=lambda pair: pair[1].number) == [
        (one.id, sealed(1)),
        (one.id, sealed(2)),
    ]
    assert len(store.secrets.not_under("b", 1)) == 1
    store.secrets.reseal(
        [(id, msgspec.structs.replace(old, key="b", sealed=b"new")) for id, old in waiting]
    )
    assert store.secrets.not_under("b", 10) == ()
    assert {secret.sealed for secret in store.secrets.of(one.id)} == {b"new"}
    assert store.secrets.of(two.id) == (sealed(1, "b"),)


def test_secret_sealed_by_a_retired_key_is_refused(store: Store) -> None:
    one = add_with(store, sealed(1))
    store.secrets.retire(["a"], "b")
    with pytest.raises(RetiredKey, match="replaced here by b"):
        add_with(store, sealed(1))
    with pytest.raises(RetiredKey):
        store.memories.replace(one, document(one), "edit", [sealed(2)])
    with pytest.raises(RetiredKey):
        store.memories.scrub(Entry(one, document(one), (), (sealed(2),)))
    with pytest.raises(RetiredKey):
        store.secrets.reseal([(one.id, sealed(1))])
    with pytest.raises(RetiredKey):
        store.secrets.retire(["b"], "a")
    store.memories.replace(one, document(one), "edit", [sealed(2, "b")])
    assert store.secrets.keys_in_use() == ("a", "b")


def test_record_is_read_from_its_end(store: Store) -> None:
    for number in range(3):
        store.audit.note("rotate", None, str(number))
    assert [entry.detail for entry in store.audit.noted(2)] == ["2", "1"]
    assert [finding.check for finding in store.upkeep.findings() if not finding.ok] == []


def test_scrubbing_changes_revisions_in_place(store: Store) -> None:
    one = memory("the word xyzzy")
    add(store, one)
    clean = msgspec.structs.replace(one, content="the word [secret:jwt:1]")
    past = Revision(revision=1, changed_at=one.updated_at, action="remember", memory=clean)
    store.memories.scrub(Entry(clean, document(clean), (past,), (sealed(1),)))
    assert store.memories.get(one.id) == clean
    assert [old.memory for old in store.memories.revisions(one.id)] == [clean]
    assert found(store, "xyzzy") == []
    assert found(store, "word") == [one.id]
    assert store.secrets.of(one.id) == (sealed(1),)
    with pytest.raises(Conflict):
        store.memories.scrub(Entry(msgspec.structs.replace(clean, revision=9), document(clean)))
