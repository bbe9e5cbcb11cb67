"""Repeated ingestion follows edits, moves and deletions, and keeps manual changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.notes import Take, Write, everything
from trivet import Trivet
from trivet.errors import Conflict, NotFound
from trivet.sources.files import Options, drop
from trivet.sources.files.ingestion import vaults

NOTE = "# Deploys\n\nInes presses the button.\n\n## When\n\nOn Tuesdays.\n\n## How\n\nWith `make ship`.\n"


def test_each_heading_becomes_a_memory(memory: Trivet, write: Write, take: Take) -> None:
    write("work/deploys.md", NOTE)
    assert take().stored == 3
    found = everything(memory)
    assert set(found) == {"Ines presses the button.", "On Tuesdays.", "With `make ship`."}
    when = found["On Tuesdays."]
    assert when.title == "Deploys: When"
    assert when.source is not None
    assert (when.source.uri, when.source.start_line, when.source.end_line) == (
        "notes/work/deploys.md",
        5,
        8,
    )
    assert f"{when.created_at:%Y-%m-%d}" == "2023-11-14"


def test_unchanged_files_are_not_read_again(
    memory: Trivet, write: Write, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("deploys.md", NOTE)
    write("other.txt", "Plain words.")
    take()
    monkeypatch.setattr(
        "trivet.sources.files.ingestion.read_text", lambda *_: pytest.fail("a file was read")
    )
    again = take()
    assert (again.files_unchanged, again.files_read, again.changed) == (2, 0, False)


def test_recent_change_with_same_time_is_detected(memory: Trivet, vault: Path, take: Take) -> None:
    file = vault / "a.md"
    file.write_text("first text")
    found = file.stat()
    take()
    file.write_text("other text")
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert take().updated == 1
    assert set(everything(memory)) == {"other text"}


def test_edit_adds_revision_but_line_shift_does_not(
    memory: Trivet, write: Write, take: Take
) -> None:
    write("deploys.md", NOTE)
    take()
    before = everything(memory)
    write(
        "deploys.md",
        NOTE.replace("Ines presses the button.", "Ines or Bo presses it.\nNobody else."),
    )
    again = take()
    assert (again.updated, again.unchanged, again.stored, again.forgotten) == (1, 2, 0, 0)
    after = everything(memory)
    assert after["Ines or Bo presses it.\nNobody else."].id == before["Ines presses the button."].id
    assert len(memory.history(before["Ines presses the button."].id)) == 2
    shifted = after["On Tuesdays."]
    assert shifted.revision == 1
    assert shifted.source is not None
    assert shifted.source.start_line == 6


def test_moved_file_keeps_ids(memory: Trivet, write: Write, take: Take, vault: Path) -> None:
    file = write("deploys.md", NOTE)
    take()
    before = everything(memory)
    (vault / "archive").mkdir()
    file.rename(vault / "archive" / "shipping.md")
    moved = take()
    assert (moved.moved, moved.stored, moved.forgotten, moved.files_gone) == (3, 0, 0, 1)
    after = everything(memory)
    assert {text: one.id for text, one in after.items()} == {
        text: one.id for text, one in before.items()
    }
    assert {one.source.uri for one in after.values() if one.source} == {"notes/archive/shipping.md"}


def test_moved_and_edited_file_keeps_ids(memory: Trivet, write: Write, take: Take) -> None:
    file = write("deploys.md", NOTE)
    take()
    when = everything(memory)["On Tuesdays."].id
    file.unlink()
    write("new/ships.md", NOTE.replace("On Tuesdays.", "On Thursdays."))
    assert take().forgotten == 0
    assert everything(memory)["On Thursdays."].id == when


def test_section_moved_to_other_file_keeps_id(memory: Trivet, write: Write, take: Take) -> None:
    write("a.md", "# A\n\nalpha\n\n## Moving\n\nthe moving part\n")
    write("b.md", "# B\n\nbeta\n")
    take()
    before = everything(memory)["the moving part"].id
    write("a.md", "# A\n\nalpha\n")
    write("b.md", "# B\n\nbeta\n\n## Moving\n\nthe moving part\n")
    again = take()
    assert (again.moved, again.forgotten, again.stored) == (1, 0, 0)
    assert everything(memory)["the moving part"].id == before
    write("a.md", "# A\n\nalpha\n\n## Moving\n\nsomething else in its old place\n")
    take()
    assert everything(memory)["something else in its old place"].id != before


def test_inserted_item_keeps_other_ids(memory: Trivet, write: Write, take: Take) -> None:
    write("MEMORY.md", "# Facts\n\n- one is first\n- two is second\n")
    take()
    before = everything(memory)
    write("MEMORY.md", "# Facts\n\n- zero comes before\n- one is first\n- two is second\n")
    assert take().stored == 1
    after = everything(memory)
    assert {text: after[text].id for text in before} == {
        text: one.id for text, one in before.items()
    }


def test_restored_file_gets_its_ids_back(memory: Trivet, write: Write, take: Take) -> None:
    write("keep.md", "kept")
    file = write("deploys.md", NOTE)
    take()
    before = everything(memory)["On Tuesdays."].id
    file.unlink()
    assert (take().forgotten, set(everything(memory))) == (3, {"kept"})
    write("deploys.md", NOTE)
    assert take().stored == 3
    assert everything(memory)["On Tuesdays."].id == before


def test_manually_removed_memories_stay_removed(memory: Trivet, write: Write, take: Take) -> None:
    write("deploys.md", NOTE)
    take()
    found = everything(memory)
    memory.forget(found["On Tuesdays."].id)
    memory.purge(found["With `make ship`."].id)
    write("deploys.md", NOTE.replace("Tuesdays", "Fridays").replace("make ship", "make send"))
    assert take().left_forgotten == 2
    assert set(everything(memory)) == {"Ines presses the button."}


def test_manual_fields_survive_file_updates(memory: Trivet, write: Write, take: Take) -> None:
    write("deploys.md", NOTE)
    take()
    id = everything(memory)["On Tuesdays."].id
    memory.edit(id, importance=0.9, category="decisions")
    write("deploys.md", NOTE.replace("On Tuesdays.", "On Fridays."))
    take()
    edited = memory.get(id)
    assert (edited.content, edited.importance, edited.category) == ("On Fridays.", 0.9, "decisions")


def test_empty_folder_does_not_delete_memories(memory: Trivet, write: Write, take: Take) -> None:
    file = write("deploys.md", NOTE)
    take()
    file.unlink()
    with pytest.raises(Conflict, match=r"mounted\?.*--drop notes"):
        take()
    assert len(everything(memory)) == 3


def test_vault_may_move_but_name_stays_unique(
    memory: Trivet, write: Write, take: Take, vault: Path, tmp_path: Path
) -> None:
    write("deploys.md", NOTE)
    take()
    other = tmp_path / "elsewhere" / "notes"
    other.mkdir(parents=True)
    (other / "x.md").write_text("x")
    with pytest.raises(Conflict, match=r"another --name"):
        take(other)
    assert take(other, name="others").stored == 1
    moved = tmp_path / "moved" / "notes"
    moved.parent.mkdir()
    vault.rename(moved)
    again = take(moved)
    assert (again.files_unchanged, again.changed) == (1, False)
    assert {one.name: one.root for one in vaults(memory)} == {
        "notes": str(moved),
        "others": str(other),
    }


def test_ingesting_one_file_leaves_others(memory: Trivet, write: Write, take: Take) -> None:
    write("deploys.md", NOTE)
    gone, file = write("gone.md", "gone"), write("sub/one.md", "one")
    take()
    gone.unlink()
    write("sub/one.md", "one and a half")
    assert (take(file).updated, take(file).forgotten) == (1, 0)
    assert "gone" in everything(memory)
    assert take(file.parent).forgotten == 0
    assert take().forgotten == 1


def test_overlapping_vaults_are_rejected(
    memory: Trivet, write: Write, take: Take, vault: Path
) -> None:
    write("sub/one.md", "one")
    write("two.md", "two")
    take(vault / "sub")
    with pytest.raises(Conflict, match="--exclude sub"):
        take()
    assert take(options=Options(exclude=("sub",))).stored == 1


def test_options_persist_and_changes_reach_every_file(
    memory: Trivet, write: Write, take: Take
) -> None:
    write("deploys.md", NOTE)
    take(options=Options(scope="me/notes", category="projects", tags=("til",)))
    assert {(one.scope, one.category, one.tags) for one in everything(memory).values()} == {
        ("me/notes", "projects", ("til",))
    }
    assert not take().changed
    assert take(options=Options(tags=("other",))).updated == 3
    assert {(one.scope, one.tags) for one in everything(memory).values()} == {
        ("me/notes", ("other",))
    }


def test_dry_run_changes_nothing(memory: Trivet, write: Write, take: Take) -> None:
    write("deploys.md", NOTE)
    assert take(dry_run=True).stored == 3
    assert (everything(memory), vaults(memory)) == ({}, ())
    take()
    file = write("deploys.md", NOTE.replace("Tuesdays", "Fridays"))
    assert take(dry_run=True).updated == 1
    assert "On Tuesdays." in everything(memory)
    file.unlink()
    write("other.md", "other")
    assert take(dry_run=True).forgotten == 3


def test_dropped_vault_can_be_ingested_again(memory: Trivet, write: Write, take: Take) -> None:
    write("deploys.md", NOTE)
    take()
    assert drop(memory, "notes") == 3
    assert everything(memory) == {}
    with pytest.raises(NotFound, match="none yet"):
        drop(memory, "notes")
    assert take().stored == 3
    assert len(everything(memory)) == 3
