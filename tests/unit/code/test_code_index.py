"""The code index follows its tree and reports where it is behind."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import rmtree
from threading import Event

import pytest

from trivet.code.code_index import CodeIndex


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, name in {"a.py": "alpha", "lib/b.py": "beta", "lib/deep/c.py": "gamma"}.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def {name}() -> None:\n    pass\n")
    return tmp_path


def defined(index: CodeIndex, name: str) -> list[str]:
    return [hit.path for hit in index.symbol(name).hits]


def test_partial_refresh_leaves_other_paths(folder: Path) -> None:
    with CodeIndex.open(folder) as index:
        assert index.refresh().files == 3
        (folder / "a.py").write_text("def omega() -> None:\n    pass\n")
        (folder / "lib/new.py").write_text("def delta() -> None:\n    pass\n")
        rmtree(folder / "lib/deep")
        assert index.refresh(only=["lib"]).indexed == 1
        assert (defined(index, "delta"), defined(index, "gamma"), defined(index, "beta")) == (
            ["lib/new.py"],
            [],
            ["lib/b.py"],
        )
        assert (defined(index, "alpha"), defined(index, "omega")) == (["a.py"], [])
        assert index.refresh(only=["a.py"]).files == 3
        assert (defined(index, "alpha"), defined(index, "omega")) == ([], ["a.py"])
        assert index.refresh().indexed == 0


def test_watch_indexes_saved_files(folder: Path) -> None:
    stop = Event()
    with CodeIndex.open(folder) as index:
        following = index.follow(stop)
        assert next(following).files == 3
        (folder / "lib/b.py").write_text("def omega() -> None:\n    pass\n")
        while not defined(index, "omega"):
            next(following)
        assert defined(index, "beta") == []
        stop.set()
        assert list(following) == []


def test_hit_in_changed_file_is_reported_stale(folder: Path) -> None:
    with CodeIndex.open(folder) as index:
        assert index.search("alpha").status.stale == ()
        later = (folder / "a.py").stat().st_mtime + 60
        os.utime(folder / "a.py", (later, later))
        assert index.search("alpha").status.stale == ("a.py",)
        (folder / "a.py").unlink()
        assert index.search("alpha").status.stale == ("a.py",)
        assert index.refresh().files == 2


def test_stale_files_are_reported_without_indexing(folder: Path) -> None:
    with CodeIndex.open(folder / "lib") as index:
        behind = index.known_so_far()
        assert (behind.files, sorted(behind.stale)) == (0, ["b.py", "deep/c.py"])
        index.refresh()
        (folder / "lib/b.py").write_text("def omega() -> None:\n    pass\n")
        behind = index.known_so_far()
        assert (behind.files, behind.stale) == (1, ("b.py",))
        assert index.refresh().indexed == 1


def test_snippet_shows_named_definition(folder: Path) -> None:
    rows = [f"def one{number}() -> int:\n    return {number}\n\n" for number in range(8)]
    (folder / "many.py").write_text("".join(rows))
    with CodeIndex.open(folder) as index:
        [hit, *_] = index.search("one6", limit=1, budget=20).hits
        assert (hit.symbol, hit.snippet_start) == ("one6", 19)
        assert hit.snippet.splitlines()[0] == "def one6() -> int:"


def test_export_ranks_after_definition(folder: Path) -> None:
    (folder / "__init__.py").write_text("from .lib.b import beta as beta\n")
    with CodeIndex.open(folder) as index:
        assert [(hit.path, hit.kind) for hit in index.symbol("beta").hits] == [
            ("lib/b.py", "function"),
            ("__init__.py", "export"),
        ]
