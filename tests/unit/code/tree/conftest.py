"""Git repositories for tests, copied from one template because each git command takes 10 ms."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., str]

FILES = {
    "app.py": "def start():\n    return 1\n",
    "lib/retry.py": "def retry():\n    return 2\n",
    "lib/deep/wait.py": "def wait():\n    return 3\n",
    ".gitignore": "*.log\nbuilt/\n",
}


@pytest.fixture(autouse=True)
def own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's git settings and code indexes."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("TRIVET_CODE_CACHE", str(tmp_path / "indexes"))


def run_git(folder: Path, *arguments: str, check: bool = True) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    allowed = ("-c", "protocol.file.allow=always")  # lets git clone submodules from local folders
    done = subprocess.run(
        ["git", *who, *allowed, *arguments], cwd=folder, capture_output=True, check=check
    )
    return done.stdout.decode()


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template") / "shop"
    write(folder, FILES)
    run_git(folder, "init", "-q")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-qm", "all")
    return folder


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Path:
    """A worktree with FILES, all committed."""
    return Path(shutil.copytree(template, tmp_path / "shop"))
