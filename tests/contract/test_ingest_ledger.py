"""Every store keeps the same ledger of ingested files, and related writes share a transaction."""

from __future__ import annotations

import pytest

from support.stores import Open, add, memory
from trivet.store.records import VaultFile, VaultLink, VaultPart, VaultRecord
from trivet.store.relational.store import RelationalStore as Store

VAULT = VaultRecord("notes", "/home/ana/notes", "{}")
FILE = VaultFile("a.md", 10, 1_700_000_000_000_000_000, "markdown/1")


def part(id: str, path: str = "a.md") -> VaultPart:
    return VaultPart(id, path, "place", "content", "said", "{}")


def test_ledger_round_trips(store: Store, open_store: Open) -> None:
    store.vaults.keep(VAULT)
    store.vaults.note_file("notes", FILE, [part("1"), part("2")], [])
    store.vaults.note_links("notes", [VaultLink("1", "see-also", "2")], [])
    other = open_store().vaults
    assert (other.vaults(), other.files("notes")) == ((VAULT,), (FILE,))
    assert set(other.parts("notes")) == {part("1"), part("2")}
    assert other.links("notes") == (VaultLink("1", "see-also", "2"),)
    assert (other.files("else"), other.parts("else"), other.links("else")) == ((), (), ())
    moved = VaultRecord("notes", "/elsewhere", '{"scope":"x"}')
    store.vaults.keep(moved)
    assert (other.vaults(), len(other.parts("notes"))) == ((moved,), 2)


def test_part_taken_over_by_another_file_is_not_removed(store: Store) -> None:
    store.vaults.keep(VAULT)
    store.vaults.note_file("notes", FILE, [part("1"), part("2")], [])
    store.vaults.note_file("notes", VaultFile("b.md", 1, 1, "r"), [part("1", "b.md")], [])
    store.vaults.note_file("notes", FILE, [], ["1", "2"])
    assert store.vaults.parts("notes") == (part("1", "b.md"),)
    store.vaults.forget_file("notes", "b.md", ["1"])
    assert (store.vaults.parts("notes"), store.vaults.files("notes")) == ((), (FILE,))


def test_dropped_vault_leaves_nothing(store: Store) -> None:
    store.vaults.keep(VAULT)
    store.vaults.note_file("notes", FILE, [part("1")], [])
    store.vaults.note_links("notes", [VaultLink("1", "see-also", "2")], [])
    store.vaults.drop("notes")
    vaults = store.vaults
    assert (
        vaults.vaults(),
        vaults.files("notes"),
        vaults.parts("notes"),
        vaults.links("notes"),
    ) == ((), (), (), ())


def test_links_are_added_and_removed(store: Store) -> None:
    store.vaults.keep(VAULT)
    link = VaultLink("1", "see-also", "2")
    store.vaults.note_links("notes", [link, link], [])
    store.vaults.note_links("notes", [], [link])
    assert store.vaults.links("notes") == ()


def test_grouped_writes_commit_or_roll_back_together(store: Store, open_store: Open) -> None:
    store.vaults.keep(VAULT)
    one = memory("one")

    def write() -> None:
        with store.together():
            add(store, one)
            store.vaults.note_file("notes", FILE, [part(one.id)], [])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert (open_store().memories.get_many([one.id]), open_store().vaults.files("notes")) == (
        {},
        (),
    )
    with store.together():
        add(store, one)
        store.vaults.note_file("notes", FILE, [part(one.id)], [])
    assert (len(open_store().memories.get_many([one.id])), open_store().vaults.files("notes")) == (
        1,
        (FILE,),
    )


def test_moving_lines_adds_no_revision(store: Store) -> None:
    one = memory("one", source="notes/a.md")
    add(store, one)
    store.vaults.set_lines(one.id, 3, 9)
    found = store.memories.get(one.id)
    assert found.source is not None
    assert (found.source.start_line, found.source.end_line, found.revision) == (3, 9, 1)
