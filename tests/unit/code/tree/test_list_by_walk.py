"""A folder is listed correctly where git is not available."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from trivet.code.tree import Listing, Root, Stat, blob_of, find_root, list_tree

from .conftest import FILES, run_git, write


def paths(listing: Listing) -> set[str]:
    return {file.path for file in listing.tree.files}


def reasons(listing: Listing) -> dict[str, str]:
    return {left.path: left.reason for left in listing.tree.left_out}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "plain", FILES)
    return tmp_path / "plain"


IGNORES = {
    ".gitignore": "*.log\n!keep.log\nbuilt/\n/top.py\n# a\n\\#odd.py\nlib/**/made_*\ntrailing.py   \n[ab].txt\n"
    "[!x]?.c\n**/hid\n\\*star\n*.[oa]b\n",
    "lib/.gitignore": "!deep.log\n*.tmp\nsub/*\n!sub/back.py\n",
}
NAMES = (
    "a.log keep.log built/x.py lib/built/y.py lib/built.py top.py lib/top.py #odd.py lib/one/two/made_it.py "
    "lib/made_it.py trailing.py a.txt c.txt lib/deep.log lib/x/deep.log lib/x.tmp x.tmp lib/sub/gone.py lib/sub/back.py"
    " aa.c xa.c lib/deep/hid/x.py hid lib/hide.py lib/sub.py *star a*star a.ob a.ub"
).split()


def test_ignore_rules_match_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "shop", {**IGNORES, **dict.fromkeys(NAMES, "x\n")})
    run_git(tmp_path / "shop", "init", "-q")
    by_git = list_tree(find_root(tmp_path / "shop"))
    monkeypatch.setenv("PATH", str(tmp_path))
    by_walk = list_tree(find_root(tmp_path / "shop"))
    assert paths(by_walk) == paths(by_git)
    assert 0 < len(paths(by_walk)) < len(NAMES)
    assert reasons(by_walk)["built/"] == "ignored by .gitignore"


def test_files_have_git_blob_ids_without_git(folder: Path) -> None:
    listing = list_tree(find_root(folder))
    assert {file.path: file.blob for file in listing.tree.files} == {
        path: blob_of(text.encode()) for path, text in FILES.items()
    }
    assert blob_of(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_tool_output_is_excluded_with_a_reason(
    folder: Path, template: Path, tmp_path: Path
) -> None:
    made = (
        "node_modules/x.js",
        ".idea/x.xml",
        "env/pyvenv.cfg",
        "rust/target/x.rs",
        "out/CMakeCache.txt",
        "c/CACHEDIR.TAG",
    )
    write(
        folder, dict.fromkeys((*made, "rust/Cargo.toml", "target/mine.py", ".github/ci.yml"), "x\n")
    )
    write(folder / "nested", {".git/HEAD": "x\n", "x.py": "x\n"})
    write(tmp_path, {"outside/secret.py": "x\n"})
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "away.py").symlink_to(tmp_path / "outside/secret.py")
    os.mkfifo(folder / "pipe.py")
    listing = list_tree(find_root(folder))
    assert {path: reason.partition(".")[0] for path, reason in reasons(listing).items()} == {
        "node_modules/": "third-party code",
        ".idea/": "hidden",
        "env/": "a Python environment",
        "rust/target/": "build output",
        "out/": "build output",
        "c/": "a cache",
        "nested/": "a separate git repository",
        "link": "a symbolic link, which is not followed",
        "away.py": "a symbolic link, which is not followed",
        "pipe.py": "not a regular file",
    }
    assert {"rust/Cargo.toml", "target/mine.py", ".github/ci.yml"} <= paths(listing)


def test_expensive_ignore_line_is_skipped_and_reported(folder: Path) -> None:
    write(folder, {".gitignore": "a*a*a*a*a*a*a*a*b\n*.tmp\n", "a" * 200: "x\n", "x.tmp": "x\n"})
    listing = list_tree(find_root(folder))
    assert "a" * 200 in paths(listing)
    assert "x.tmp" not in paths(listing)
    assert reasons(listing)[".gitignore"].startswith("1 of its lines")


def test_only_requested_paths_are_listed(folder: Path) -> None:
    write(folder, {"lib/x.log": "x\n", "libx/y.py": "y\n"})
    root = find_root(folder)
    assert paths(list_tree(root, only=["lib"])) == {"lib/retry.py", "lib/deep/wait.py"}
    assert paths(list_tree(root, only=["lib/deep/wait.py", "lib/x.log", "gone.py"])) == {
        "lib/deep/wait.py"
    }


def test_recently_changed_file_is_read_again(folder: Path) -> None:
    """A file changed within one clock tick of the listing may have changed again since."""
    root = find_root(folder)
    first = list_tree(root)
    assert all(stat.modified < 0 for stat in first.stats.values())  # all were written just now
    status = (folder / "app.py").stat()
    known = Stat(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, "as known")
    assert list_tree(root, {"app.py": known}).stats["app.py"].blob == "as known"
    assert list_tree(root, first.stats).tree == first.tree


def test_old_unchanged_file_is_not_read_again() -> None:
    """Uses a package installed before the test, because a file's change time cannot be set back."""
    package = Path(msgspec.__file__).parent
    root = Root(folder=package, prefix="", identity=str(package), git=False)
    first = list_tree(root)
    assert all(stat.modified > 0 for stat in first.stats.values())
    again = list_tree(root, first.stats)
    assert again.tree == first.tree
    assert all(again.stats[path] is stat for path, stat in first.stats.items())
