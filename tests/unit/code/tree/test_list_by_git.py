"""A git worktree is listed by blob ids of current bytes, and nothing from the repository runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

from trivet.code.tree import Listing, Stat, blob_of, find_root, list_tree, read_blob, read_file
from trivet.code.tree.listing import MAX_FILE_BYTES
from trivet.errors import InvalidInput

from .conftest import FILES, run_git, write


def blobs(listing: Listing) -> dict[str, str]:
    return {file.path: file.blob for file in listing.tree.files}


def reasons(listing: Listing) -> dict[str, str]:
    return {left.path: left.reason for left in listing.tree.left_out}


def listed(folder: Path) -> dict[str, str]:
    return blobs(list_tree(find_root(folder)))


def of(text: str) -> str:
    return blob_of(text.encode())


def test_files_have_git_blob_ids(repository: Path) -> None:
    assert listed(repository) == {path: of(text) for path, text in FILES.items()}
    assert listed(repository)["app.py"] == run_git(repository, "rev-parse", "HEAD:app.py").strip()
    assert {file.path: file.size for file in list_tree(find_root(repository)).tree.files} == {
        path: len(text) for path, text in FILES.items()
    }


def test_changed_files_have_current_content(repository: Path) -> None:
    write(
        repository,
        {"app.py": "changed = 1\n", "new.py": "n = 1\n", "debug.log": "x\n", "built/x.py": "x\n"},
    )
    (repository / "lib/retry.py").unlink()
    (repository / "lib/deep/wait.py").rename(repository / "lib/deep/pause.py")
    assert listed(repository) == {
        ".gitignore": of(FILES[".gitignore"]),
        "app.py": of("changed = 1\n"),
        "lib/deep/pause.py": of(FILES["lib/deep/wait.py"]),
        "new.py": of("n = 1\n"),
    }


def test_same_size_and_time_change_is_detected(repository: Path) -> None:
    before = list_tree(find_root(repository))
    times = (repository / "app.py").stat()
    write(repository, {"app.py": FILES["app.py"].replace("1", "7")})
    os.utime(repository / "app.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    after = list_tree(find_root(repository), before.stats)
    assert blobs(after)["app.py"] == of(FILES["app.py"].replace("1", "7"))


def test_branch_switch_changes_only_different_files(repository: Path) -> None:
    before = list_tree(find_root(repository))
    run_git(repository, "switch", "-qc", "other")
    write(repository, {"app.py": "other = 1\n"})
    run_git(repository, "commit", "-qam", "other")
    other = list_tree(find_root(repository), before.stats)
    assert set(blobs(other).items()) - set(blobs(before).items()) == {("app.py", of("other = 1\n"))}
    run_git(repository, "switch", "-q", "main")
    assert list_tree(find_root(repository), other.stats).tree == before.tree


def test_only_requested_paths_are_listed(repository: Path) -> None:
    write(
        repository,
        {"app.py": "changed = 1\n", "lib/new.py": "n = 1\n", "debug.log": "x\n", "other.py": "o\n"},
    )
    root = find_root(repository)
    assert set(blobs(list_tree(root, only=["app.py", "debug.log", "gone.py"]))) == {"app.py"}
    assert set(blobs(list_tree(root, only=["lib"]))) == {
        "lib/retry.py",
        "lib/new.py",
        "lib/deep/wait.py",
    }
    assert blobs(list_tree(root, only=["app.py", ""])) == blobs(list_tree(root))


def test_unusual_index_flags(repository: Path) -> None:
    write(repository, {"assumed.py": "a = 1\n", "skipped.py": "s = 1\n", "sparse.py": "s = 2\n"})
    run_git(repository, "add", ".")
    run_git(repository, "update-index", "--assume-unchanged", "assumed.py")
    run_git(repository, "update-index", "--skip-worktree", "skipped.py", "sparse.py")
    write(repository, {"assumed.py": "a = 22\n", "skipped.py": "s = 11\n", "meant.py": "m = 1\n"})
    (repository / "sparse.py").unlink()
    run_git(repository, "add", "-N", "meant.py")
    found = listed(repository)
    assert (found["assumed.py"], found["skipped.py"], found["meant.py"]) == (
        of("a = 22\n"),
        of("s = 11\n"),
        of("m = 1\n"),
    )
    assert "sparse.py" not in found


def test_conflicted_file_is_listed_once_from_disk(repository: Path) -> None:
    run_git(repository, "switch", "-qc", "other")
    write(repository, {"app.py": "other = 1\n"})
    run_git(repository, "commit", "-qam", "other")
    run_git(repository, "switch", "-q", "main")
    write(repository, {"app.py": "main = 1\n"})
    run_git(repository, "commit", "-qam", "main")
    run_git(repository, "merge", "other", check=False)
    assert "<<<<<<<" in (repository / "app.py").read_text()
    files = [file for file in list_tree(find_root(repository)).tree.files if file.path == "app.py"]
    assert [file.blob for file in files] == [of((repository / "app.py").read_text())]


def test_submodule_is_part_of_tree(repository: Path, template: Path) -> None:
    for name in ("parts", "absent"):
        run_git(repository, "submodule", "--quiet", "add", str(template), name)
    run_git(repository, "submodule", "--quiet", "deinit", "-f", "absent")
    write(repository / "parts", {"app.py": "changed = 1\n", "new.py": "n = 1\n", "x.log": "x\n"})
    root = find_root(repository)
    listing = list_tree(root)
    assert blobs(listing)["parts/app.py"] == of("changed = 1\n")
    assert blobs(listing)["parts/lib/retry.py"] == of(FILES["lib/retry.py"])
    assert "parts/new.py" in blobs(listing)
    assert "parts/x.log" not in blobs(listing)
    assert reasons(listing) == {"absent/": "a submodule that is not checked out"}
    assert blobs(list_tree(root, only=["parts/app.py"]))["parts/app.py"] == of("changed = 1\n")
    assert find_root(repository / "parts" / "lib").folder == repository / "parts"


def test_submodule_with_other_worktree_is_excluded(
    repository: Path, template: Path, tmp_path: Path
) -> None:
    run_git(repository, "submodule", "--quiet", "add", str(template), "parts")
    run_git(repository / "parts", "config", "core.worktree", str(tmp_path))
    listing = list_tree(find_root(repository))
    assert not any(path.startswith("parts/") for path in blobs(listing))
    assert "git does not list" in reasons(listing)["parts/"]


def test_filtered_file_is_identified_by_bytes_on_disk(repository: Path) -> None:
    """With Git LFS, the same blob is a pointer in one worktree and content in another."""
    run_git(repository, "config", "filter.loud.clean", "tr a-z A-Z")
    write(repository, {".gitattributes": "*.md filter=loud\n", "read.md": "quiet\n"})
    run_git(repository, "add", ".")
    assert run_git(repository, "show", ":read.md") == "QUIET\n"
    assert listed(repository)["read.md"] == of("quiet\n")
    assert blobs(list_tree(find_root(repository), only=["read.md"])) == {"read.md": of("quiet\n")}


def test_excluded_files_have_a_reason(repository: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("x = 1\n")
    (repository / "link.py").symlink_to(secret)
    (repository / "folder").symlink_to(tmp_path)
    os.mkfifo(repository / "pipe.py")
    write(
        repository,
        {"logo.png": "x", ".env": "KEY=1\n", ".env.example": "KEY=\n", "sub/skip.py": "x\n"},
    )
    write(
        repository,
        {
            ".trivetignore": "lib/deep/\n",
            "sub/.trivetignore": "skip.*\n",
            "large.py": "x" * (MAX_FILE_BYTES + 1),
        },
    )
    run_git(repository, "add", "link.py", "large.py")
    listing = list_tree(find_root(repository))
    assert {path: reason.partition(":")[0] for path, reason in reasons(listing).items()} == {
        "link.py": "a symbolic link, which is not followed",
        "folder": "a symbolic link, which is not followed",
        "large.py": "too large",
        "logo.png": "not text, by its extension",
        ".env": "may hold keys",
        "sub/skip.py": "ignored by .trivetignore",
        "lib/deep/wait.py": "ignored by .trivetignore",
    }
    assert {".env.example", "app.py", "lib/retry.py"} <= set(blobs(listing))
    assert "lib/deep/wait.py" in reasons(
        list_tree(find_root(repository), only=["lib/deep/wait.py"])
    )


def test_tool_output_is_excluded_without_ignore_files(repository: Path) -> None:
    made = "node_modules/a/b.js lib/node_modules/c.js env/pyvenv.cfg env/lib/d.py lib/made/CACHEDIR.TAG lib/made/e.c"
    write(
        repository,
        dict.fromkeys(
            (*made.split(), ".idea/f.xml", ".github/ci.yml", "tools/node_modules/kept.js"), "x\n"
        ),
    )
    run_git(repository, "add", "tools")
    listing = list_tree(find_root(repository))
    assert set(blobs(listing)) == {*FILES, ".github/ci.yml", "tools/node_modules/kept.js"}
    assert reasons(listing) == {
        "node_modules/": "third-party code",
        "lib/node_modules/": "third-party code",
        "env/": "a Python environment",
        "lib/made/": "a cache",
        ".idea/": "hidden",
    }
    assert blobs(list_tree(find_root(repository), only=["env/lib/d.py"])) == {}
    for folder in ("node_modules/a", "env/lib", ".idea"):
        assert find_root(repository / folder).folder == repository / folder


def test_blob_is_read_only_if_bytes_match(repository: Path) -> None:
    """A branch switch between listing and reading must not index the other branch's bytes."""
    root = find_root(repository)
    (file,) = list_tree(root, only=["app.py"]).tree.files
    assert read_blob(root, file) == FILES["app.py"].encode()
    (repository / "app.py").write_bytes(FILES["app.py"].replace("\n", "\r\n").encode())
    assert read_blob(root, file) is not None
    write(repository, {"app.py": "other = 1\n"})
    assert read_blob(root, file) is None


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take only UTF-8")
def test_non_utf8_name_is_excluded(repository: Path) -> None:
    (repository / os.fsdecode(b"caf\xe9.py")).write_text("x = 1\n")
    write(repository, {"über.py": "x = 1\n", 'new\nline "quoted".py': "x = 1\n"})
    listing = list_tree(find_root(repository))
    assert reasons(listing) == {"caf\ufffd.py": "its name is not UTF-8"}
    assert {"über.py", 'new\nline "quoted".py'} <= set(blobs(listing))


def test_repository_runs_no_program_and_is_not_modified(repository: Path, tmp_path: Path) -> None:
    """A repository from an archive can name programs in its own configuration."""
    canary = tmp_path / "canary"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho ran >> {canary}\ncat\n")
    script.chmod(0o755)
    write(
        repository,
        {".gitattributes": "*.py filter=evil\n", "app.py": FILES["app.py"].replace("1", "7")},
    )
    for name in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.process",
        "core.sshCommand",
        "core.pager",
    ):
        run_git(repository, "config", name, str(script))
    run_git(repository, "config", "filter.evil.required", "true")
    hook = repository / ".git/hooks/post-index-change"
    hook.write_text(script.read_text())
    hook.chmod(0o755)
    index = (repository / ".git/index").read_bytes()
    root = find_root(repository / "lib")
    assert root.git
    assert listed(repository)["app.py"] == of(FILES["app.py"].replace("1", "7"))
    assert not canary.exists()
    assert (repository / ".git/index").read_bytes() == index
    run_git(repository, "ls-files", "-m", check=False)
    assert canary.exists()  # git itself runs the configured program


def test_partial_clone_fetches_nothing(repository: Path, tmp_path: Path) -> None:
    """A partial clone can run a program to fetch missing objects, here an absent ignore file."""
    canary = tmp_path / "canary"
    write(repository, {"far/.gitignore": "*.tmp\n"})
    run_git(repository, "add", "far")
    blob = run_git(repository, "rev-parse", ":far/.gitignore").strip()
    run_git(repository, "update-index", "--skip-worktree", "far/.gitignore")
    (repository / "far/.gitignore").unlink()
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    write(repository, {"far/new.py": "n = 1\n"})
    with (repository / ".git/config").open("a") as config:
        config.write(
            f"[core]\nrepositoryFormatVersion = 1\nsshCommand = touch {canary};\n[extensions]\npartialClone = far\n"
            '[remote "far"]\nurl = ssh://host/x\npromisor = true\n[protocol "ssh"]\nallow = always\n'
        )
    assert "far/new.py" in listed(repository)
    assert not canary.exists()
    run_git(repository, "ls-files", "-o", "--exclude-standard", check=False)
    assert canary.exists()


def test_filter_that_cannot_be_disabled_forces_walk(repository: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    run_git(repository, "config", "filter.a=b.clean", f"touch {canary}")
    write(
        repository,
        {".gitattributes": "*.py filter=a=b\n", "app.py": FILES["app.py"].replace("1", "7")},
    )
    assert listed(repository)["app.py"] == of(FILES["app.py"].replace("1", "7"))
    assert not canary.exists()


def test_git_hook_environment_is_ignored(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert find_root(repository).git
    assert set(listed(repository)) == set(FILES)


def test_unchanged_stats_avoid_reading(repository: Path) -> None:
    write(repository, {"new.py": "n = 1\n"})
    root, found = find_root(repository), (repository / "new.py").stat()
    known = Stat(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, "as known")
    assert blobs(list_tree(root, {"new.py": known}))["new.py"] == "as known"
    for field in ("size", "modified", "changed", "inode"):
        other = msgspec.structs.replace(known, **{field: getattr(known, field) - 1})
        assert blobs(list_tree(root, {"new.py": other}, only=["new.py"])) == {
            "new.py": of("n = 1\n")
        }


def test_files_outside_root_cannot_be_read(repository: Path, tmp_path: Path) -> None:
    write(tmp_path, {"outside/secret.py": "x = 1\n"})
    (repository / "link").symlink_to(tmp_path / "outside")
    (repository / "file.py").symlink_to(tmp_path / "outside/secret.py")
    (repository / "large.py").write_text("x" * (MAX_FILE_BYTES + 1))
    os.mkfifo(repository / "pipe.py")
    root = find_root(repository)
    assert read_file(root, "lib/retry.py") == FILES["lib/retry.py"].encode()
    outside = str(tmp_path / "outside/secret.py")
    for path in (
        "link/secret.py",
        "file.py",
        "../outside/secret.py",
        outside,
        "pipe.py",
        "large.py",
        "lib",
        "",
        "gone",
    ):
        with pytest.raises(InvalidInput):
            read_file(root, path)
