"""The indexed root of a folder and the location of its index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trivet.code.tree import Listing, find_root, index_path, list_tree
from trivet.errors import InvalidInput

from .conftest import run_git, write


def paths(listing: Listing) -> list[str]:
    return [file.path for file in listing.tree.files]


def test_subfolder_uses_index_of_whole_worktree(repository: Path) -> None:
    whole, part = find_root(repository), find_root(repository / "lib" / "deep")
    assert (whole.folder, whole.prefix, whole.git) == (repository, "", True)
    assert (part.folder, part.prefix) == (repository, "lib/deep/")
    assert index_path(part) == index_path(whole)
    assert index_path(whole).name.startswith("shop-")


def test_worktrees_share_index_but_list_own_files(repository: Path, tmp_path: Path) -> None:
    run_git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "beside"))
    run_git(repository, "worktree", "add", "-q", "--detach", str(repository / "within"))
    write(tmp_path / "beside", {"new.py": "x = 1\n"})
    roots = [
        find_root(folder) for folder in (repository, tmp_path / "beside", repository / "within")
    ]
    assert len({root.identity for root in roots}) == 1
    assert len({index_path(root) for root in roots}) == 1
    assert "new.py" in paths(list_tree(roots[1]))
    first = list_tree(roots[0])
    assert "new.py" not in paths(first)
    assert not any(path.startswith("within/") for path in paths(first))
    assert [left.path for left in first.tree.left_out] == ["within/"]
    assert paths(list_tree(roots[2])) == paths(first)


def test_ignored_folder_is_its_own_root(repository: Path) -> None:
    write(repository, {"built/made.py": "x = 1\n", "built/deep/more.py": "y = 1\n"})
    root = find_root(repository / "built")
    assert (root.folder, root.prefix, root.git) == (repository / "built", "", False)
    assert paths(list_tree(root)) == ["deep/more.py", "made.py"]
    assert root.identity != find_root(repository).identity


def test_folder_without_listed_files_is_its_own_root(repository: Path) -> None:
    write(repository, {"notes/one.log": "an error\n"})
    root = find_root(repository / "notes")
    assert (root.folder, root.git) == (repository / "notes", False)
    assert paths(list_tree(root)) == ["one.log"]


def test_repository_ignoring_all_files_is_not_empty(tmp_path: Path) -> None:
    write(tmp_path / "venv", {".gitignore": "*\n", "lib/package.py": "x = 1\n"})
    run_git(tmp_path / "venv", "init", "-q")
    assert paths(list_tree(find_root(tmp_path / "venv"))) == [".gitignore", "lib/package.py"]


def test_nested_repository_is_its_own_root(repository: Path, template: Path) -> None:
    shutil.copytree(template, repository / "copy")
    assert find_root(repository / "copy" / "lib").folder == repository / "copy"
    assert [left.path for left in list_tree(find_root(repository)).tree.left_out] == ["copy/"]


def test_link_to_folder_resolves_to_folder(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository / "lib")
    assert find_root(tmp_path / "link") == find_root(repository / "lib")


def test_invalid_folder_is_rejected_with_advice(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        find_root(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="is a file"):
        find_root(repository / "app.py")
    with pytest.raises(InvalidInput, match="git worktree"):
        find_root(repository / ".git")
    run_git(tmp_path, "init", "-q", "--bare", "bare")
    with pytest.raises(InvalidInput, match="git worktree"):
        find_root(tmp_path / "bare")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / ".git").write_text("gitdir: ../bare\n")
    with pytest.raises(InvalidInput, match="git worktree"):
        find_root(tmp_path / "project")


def test_configured_worktree_is_not_followed(repository: Path, tmp_path: Path) -> None:
    write(tmp_path / "private", {"diary.py": "x = 1\n"})
    run_git(repository, "config", "core.worktree", str(tmp_path))
    root = find_root(repository)
    assert (root.folder, root.git) == (repository, False)
    assert "app.py" in paths(list_tree(root))


def test_listing_without_git_program_is_equal(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "beside"))
    write(repository, {"debug.log": "x\n", "built/made.py": "x = 1\n"})
    with_git = find_root(tmp_path / "beside"), list_tree(find_root(repository)).tree.files
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_root(tmp_path / "beside").identity == with_git[0].identity
    assert not find_root(repository).git
    assert find_root(repository / "lib/deep").folder == repository
    assert find_root(repository / "built").folder == repository / "built"
    tree = list_tree(find_root(repository)).tree
    assert tree.files == with_git[1]
    assert [left.reason for left in tree.left_out if left.path == ".git/"] == [
        "files were listed without git: there is no git program on the PATH"
    ]


def test_index_is_in_user_cache(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = find_root(repository)
    assert index_path(root).parent == tmp_path / "indexes"
    monkeypatch.delenv("TRIVET_CODE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert index_path(root).parent == tmp_path / "cache" / "trivet" / "code"
    assert index_path(root).parent.stat().st_mode & 0o077 == 0
