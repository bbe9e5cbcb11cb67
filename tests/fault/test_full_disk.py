"""On a full disk, writes fail cleanly and completely, and the store works once there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.waiting import heard
from trivet import StoreError

from .actions import (
    import_on_a_full_disk,
    memories,
    open_on_a_full_disk,
    open_store,
    words,
    write_on_a_full_disk,
)
from .conftest import Start


def test_refused_write_is_absent(start: Start, path: Path) -> None:
    _, pipe = start(write_on_a_full_disk, str(path), 2_000_000)
    (kept, error), after = heard(pipe), heard(pipe)
    assert 10 < len(kept) < 2_000
    assert str(path) in error
    assert "disk" in error
    assert "rollback" not in error
    with open_store(str(path)) as trivet:
        assert all(finding.ok for finding in trivet.doctor())
        assert {memory.id for memory in trivet.list(limit=1_000).memories} == {*kept, after}
        refused = words(
            "full", len(kept)
        )  # quoted, because unquoted words also match with one letter changed
        assert trivet.recall(f'"{refused}"').hits == (), "the refused memory is in no index"
        for number in (0, len(kept) - 1):
            assert trivet.recall(words("full", number)).hits[0].id == kept[number]


def test_store_can_be_created_after_a_full_disk(start: Start, path: Path) -> None:
    _, pipe = start(open_on_a_full_disk, str(path), 20_000)
    (kept, error), id = heard(pipe), heard(pipe)
    assert kept == []
    assert "disk" in error
    assert "rollback" not in error
    with open_store(str(path)) as trivet:
        assert [memory.id for memory in trivet.list().memories] == [id]
        assert all(finding.ok for finding in trivet.doctor())


def test_import_can_be_repeated_after_a_full_disk(start: Start, path: Path, tmp_path: Path) -> None:
    memories(path, 600)
    with open_store(str(path)) as trivet:
        lines = list(trivet.export())
    _, pipe = start(import_on_a_full_disk, str(tmp_path / "target.db"), lines, 400_000)
    (_, error), (stored, unchanged, errors) = heard(pipe), heard(pipe)
    assert "disk" in error
    assert (stored + unchanged, errors) == (600, ())
    with open_store(str(tmp_path / "target.db")) as trivet:
        assert trivet.list().total == 600
        assert all(finding.ok for finding in trivet.doctor())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A two-megabyte disk, if the machine allows one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip(
            "mounting is not permitted here; the other tests of this file bound the size of files instead"
        )
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_real_full_disk(small_disk: Path) -> None:
    with open_store(str(small_disk / "memory.db")) as trivet:
        first = trivet.remember(words("first", 0)).id
        ballast = small_disk / "ballast"
        room = os.statvfs(small_disk)
        ballast.write_bytes(b"x" * room.f_bavail * room.f_bsize)
        with pytest.raises(StoreError, match=r"is full.*make room"):
            trivet.remember(words("second", 0))
        with pytest.raises(StoreError, match="full"):
            trivet.backup(small_disk / "copy.db")
        assert trivet.recall(words("first", 0)).hits[0].id == first
        ballast.unlink()
        assert trivet.recall(words("second", 0)).hits == ()
        third = trivet.remember(words("third", 0)).id
        assert {memory.id for memory in trivet.list().memories} == {first, third}
        assert [finding.check for finding in trivet.doctor() if not finding.ok] == ["room on disk"]
    assert not list(small_disk.glob("copy*"))
