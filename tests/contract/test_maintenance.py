"""Backups and index rebuilds are complete, and the checks behind `doctor` pass on a sound store."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from support.stores import Open, add, document, embed, found, memory, near
from trivet.errors import StoreError
from trivet.store.records import Document
from trivet.store.relational.store import RelationalStore as Store
from trivet.store.sqlite.store import SqliteStore


def test_sound_store_has_no_findings(store: Store) -> None:
    add(store, memory("relay"), memory("door", sensitive=True), memory("wall", state="deleted"))
    model = store.vectors.adopt("tiny", "a", 2)
    assert all(finding.ok and finding.remedy is None for finding in store.upkeep.findings())
    embed(store, model, {"relay": (1, 0)})
    assert all(finding.ok for finding in store.upkeep.findings())


def test_lexical_rebuild_stores_the_given_documents(store: Store) -> None:
    one, gone = memory("relay"), memory("door", state="deleted")
    add(store, one, gone)
    spoken = Document(("zebra",), (), (), (), ())
    assert store.upkeep.rebuild_lexical(iter([(one, spoken), (gone, spoken)])) == 2
    assert found(store, "relay") == []
    assert found(store, "zebra") == [one.id]


def test_failed_rebuild_keeps_the_old_index(store: Store) -> None:
    one = memory("relay")
    add(store, one)

    def failing_documents() -> object:
        yield one, document(memory("zebra"))
        raise KeyError("out of documents")

    with pytest.raises(KeyError):
        store.upkeep.rebuild_lexical(failing_documents())  # type: ignore[arg-type]  # raises midway
    assert found(store, "relay") == [one.id]
    assert found(store, "zebra") == []


def test_rebuilding_vectors_keeps_old_ones_searchable(store: Store) -> None:
    one = memory("relay")
    add(store, one, memory("secret", sensitive=True))
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {"relay": (1, 0)})
    assert store.upkeep.rebuild_vectors() == 1
    assert near(store, model, (1, 0)) == [one.id]
    embed(store, model, {"relay": (0, 1)})
    assert store.memories.stats().passages == 1


def test_analyzer_version_is_kept(open_store: Open) -> None:
    store = open_store()
    assert store.upkeep.version("analyser") == 0
    store.upkeep.set_version("analyser", 7)
    assert open_store().upkeep.version("analyser") == 7


def test_backup_is_complete_and_private(store: Store, tmp_path: Path) -> None:
    one = memory("relay")
    add(store, one)
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {"relay": (1, 0)})
    target = tmp_path / "copy" / "backup.db"
    target.parent.mkdir()
    store.upkeep.backup(target)
    add(store, memory("written later"))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [file.name for file in target.parent.iterdir()] == ["backup.db"]
    copy = SqliteStore(target)  # a backup is a file of the embedded store
    try:
        assert list(copy.memories.everything()) == [one]
        assert found(copy, "relay") == [one.id]
        assert near(copy, copy.vectors.models()[0], (1, 0)) == [one.id]
        assert all(finding.ok for finding in copy.upkeep.findings())
    finally:
        copy.close()


def test_leftovers_of_a_failed_backup_are_removed_by_the_next(store: Store, tmp_path: Path) -> None:
    """Above all the journal, which SQLite would apply to the new file."""
    folder = tmp_path / "copies"
    folder.mkdir()
    for rest in ("", "-journal", "-wal", "-shm"):
        (folder / f"backup.db.partial{rest}").write_bytes(b"left behind")
    store.upkeep.backup(folder / "backup.db")
    assert [file.name for file in folder.iterdir()] == ["backup.db"]


def test_backup_overwrites_nothing(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    with pytest.raises(StoreError, match=r"precious\.txt already exists"):
        store.upkeep.backup(target)
    assert target.read_text() == "precious"


def test_failed_backup_names_its_target(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing.*backup\.db"):
        store.upkeep.backup(tmp_path / "missing" / "backup.db")
