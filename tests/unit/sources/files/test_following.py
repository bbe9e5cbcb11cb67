"""Told again, an ingest follows the files: edits, moves, deletes; and leaves alone what people did by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.notes import Take, Write, everything
from trivet import Trivet
from trivet.errors import Conflict, NotFound
from trivet.sources.files import Options, drop
from trivet.sources.files.ingest import vaults

NOTE = "# Deploys\n\nInes presses the button.\n\n## When\n\nOn Tuesdays.\n\n## How\n\nWith `make ship`.\n"


def test_each_heading_is_a_memory_with_title_and_lines(
    memory: Trivet, write: Write, take: Take
) -> None:
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


def test_nothing_is_read_again_that_has_not_changed(
    memory: Trivet, write: Write, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("deploys.md", NOTE)
    write("other.txt", "Plain words.")
    take()
    monkeypatch.setattr(
        "trivet.sources.files.ingest.read_text", lambda *_: pytest.fail("a file was read")
    )
    again = take()
    assert (again.files_unchanged, again.files_read, again.changed) == (2, 0, False)


def test_a_file_changed_just_now_is_not_trusted_by_its_time(
    memory: Trivet, vault: Path, take: Take
) -> None:
    file = vault / "a.md"
    file.write_text("first text")
    found = file.stat()
    take()
    file.write_text("other text")
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert take().updated == 1
    assert set(everything(memory)) == {"other text"}


def test_an_edit_is_a_revision_and_a_shift_of_lines_is_not(
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


def test_a_moved_file_keeps_its_ids(memory: Trivet, write: Write, take: Take, vault: Path) -> None:
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


def test_a_file_moved_and_edited_keeps_the_ids_of_its_places(
    memory: Trivet, write: Write, take: Take
) -> None:
    file = write("deploys.md", NOTE)
    take()
    when = everything(memory)["On Tuesdays."].id
    file.unlink()
    write("new/ships.md", NOTE.replace("On Tuesdays.", "On Thursdays."))
    assert take().forgotten == 0
    assert everything(memory)["On Thursdays."].id == when


def test_a_section_moved_to_another_file_keeps_its_id(
    memory: Trivet, write: Write, take: Take
) -> None:
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


def test_a_heading_put_before_others_or_renamed_renames_nobody(
    memory: Trivet, write: Write, take: Take
) -> None:
    write("MEMORY.md", "# Facts\n\n- one is first\n- two is second\n")
    take()
    before = everything(memory)
    write("MEMORY.md", "# Facts\n\n- zero comes before\n- one is first\n- two is second\n")
    assert take().stored == 1
    after = everything(memory)
    assert {text: after[text].id for text in before} == {
        text: one.id for text, one in before.items()
    }


def test_a_deleted_file_is_forgotten_and_comes_back_under_its_id(
    memory: Trivet, write: Write, take: Take
) -> None:
    write("keep.md", "kept")
    file = write("deploys.md", NOTE)
    take()
    before = everything(memory)["On Tuesdays."].id
    file.unlink()
    assert (take().forgotten, set(everything(memory))) == (3, {"kept"})
    write("deploys.md", NOTE)
    assert take().stored == 3
    assert everything(memory)["On Tuesdays."].id == before


def test_what_was_forgotten_or_purged_by_hand_stays_so(
    memory: Trivet, write: Write, take: Take
) -> None:
    write("deploys.md", NOTE)
    take()
    found = everything(memory)
    memory.forget(found["On Tuesdays."].id)
    memory.purge(found["With `make ship`."].id)
    write("deploys.md", NOTE.replace("Tuesdays", "Fridays").replace("make ship", "make send"))
    assert take().left_forgotten == 2
    assert set(everything(memory)) == {"Ines presses the button."}


def test_what_was_set_by_hand_stays_where_the_file_says_nothing(
    memory: Trivet, write: Write, take: Take
) -> None:
    write("deploys.md", NOTE)
    take()
    id = everything(memory)["On Tuesdays."].id
    memory.edit(id, importance=0.9, category="decisions")
    write("deploys.md", NOTE.replace("On Tuesdays.", "On Fridays."))
    take()
    edited = memory.get(id)
    assert (edited.content, edited.importance, edited.category) == ("On Fridays.", 0.9, "decisions")


def test_an_empty_folder_is_not_taken_for_a_deletion(
    memory: Trivet, write: Write, take: Take
) -> None:
    file = write("deploys.md", NOTE)
    take()
    file.unlink()
    with pytest.raises(Conflict, match=r"mounted\?.*--drop notes"):
        take()
    assert len(everything(memory)) == 3


def test_a_vault_may_move_and_another_may_not_take_its_name(
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


def test_one_file_of_a_vault_costs_the_others_nothing(
    memory: Trivet, write: Write, take: Take
) -> None:
    write("deploys.md", NOTE)
    gone, file = write("gone.md", "gone"), write("sub/one.md", "one")
    take()
    gone.unlink()
    write("sub/one.md", "one and a half")
    assert (take(file).updated, take(file).forgotten) == (1, 0)
    assert "gone" in everything(memory)
    assert take(file.parent).forgotten == 0
    assert take().forgotten == 1


def test_a_folder_is_not_taken_in_twice(
    memory: Trivet, write: Write, take: Take, vault: Path
) -> None:
    write("sub/one.md", "one")
    write("two.md", "two")
    take(vault / "sub")
    with pytest.raises(Conflict, match="--exclude sub"):
        take()
    assert take(options=Options(exclude=("sub",))).stored == 1


def test_options_are_remembered_and_a_change_of_them_reaches_every_file(
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


def test_a_dry_run_changes_nothing(memory: Trivet, write: Write, take: Take) -> None:
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


def test_a_dropped_vault_is_forgotten_and_can_be_taken_in_again(
    memory: Trivet, write: Write, take: Take
) -> None:
    write("deploys.md", NOTE)
    take()
    assert drop(memory, "notes") == 3
    assert everything(memory) == {}
    with pytest.raises(NotFound, match="none yet"):
        drop(memory, "notes")
    assert take().stored == 3
    assert len(everything(memory)) == 3
