"""Only the user can read files that a command writes, even with a permissive umask."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import CommandLine
from support.invented_secrets import github
from support.small_dataset import write as write_dataset


@pytest.fixture
def careless() -> Iterator[None]:
    """A user with a umask that leaves new files open to everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("careless")
def test_files_and_folders_belong_to_their_owner_alone(
    tmp_path: Path, trivet: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "made" / "by" / "trivet"
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower() / "below"))
    monkeypatch.setenv("TRIVET_PATH", str(home / "store" / "memory.db"))
    monkeypatch.setenv("TRIVET_RESIDENT", "off")
    (tmp_path / "note.md").write_text("# Heron\n\nIt nests behind the boathouse.\n")
    payload = {
        "session_id": "one",
        "hook_event_name": "UserPromptSubmit",
        "prompt": "what does the bot log in with?",
    }
    commands: list[tuple[str, ...]] = [
        ("remember", f"The bot logs in with {github('bot')}."),
        ("ingest", str(tmp_path / "note.md")),
        ("backup", str(home / "copy.db")),
        ("export", "--output", str(home / "export.jsonl")),
        ("export", "--markdown", str(home / "mirror" / "below")),
        ("user", "add", "ana"),
        (
            "lab",
            "run",
            str(write_dataset(tmp_path / "small")),
            "--out",
            str(home / "runs"),
            "--embedder",
            "none",
        ),
    ]
    for command in commands:
        assert trivet(*command).status == 0, command
    assert trivet("hook", "prompt", stdin=json.dumps(payload).encode()).status == 0
    assert {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in _open_to_others(home, 0o077)
    } == {}
    assert len(list(home.rglob("*"))) > len(commands)


def _open_to_others(folder: Path, rights: int) -> Iterator[Path]:
    """Return what grants others any of these permissions."""
    for path in (folder, *folder.rglob("*")):
        if path.stat().st_mode & rights:
            yield path
