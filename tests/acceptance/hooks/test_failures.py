"""Whatever goes wrong, a hook is silent, exits with 0 within its limit, and is counted."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.command_line import CommandLine
from support.resident_home import PATIENCE, SCRIPT, Home, context_of, has_socket, prompt, stopped
from support.waiting import until
from trivet.agents.hooks.event import failures
from trivet.cli.processes import request_status, stop_resident

PORT = "The staging database listens on port 6543."
QUESTION = "which port does the staging database listen on?"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\0",
        b"[" * 100_000,
        b'{"prompt": {"a": 1}, "cwd": 5, "source": []}',
    ],
)
def test_garbage(warm: Home, said: bytes) -> None:
    assert warm.hook("prompt", said) == b""
    assert warm.status().pid


def test_garbage_is_counted(warm: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    warm.hook("prompt", b"{")
    warm.hook("nonsense", b"{}")
    found = failures()
    assert found.moments == {"prompt": 1, "nonsense": 1}
    assert found.last is not None
    assert "nonsense" in found.last
    told = json.loads(CommandLine(monkeypatch)("status", "--json").out)
    assert told["hook_failures"]["count"] == 2
    assert told["resident"]["hooks"]["prompt failed"] >= 1


def test_killed_in_the_middle_of_a_prompt(home: Home) -> None:
    """The hook has sent its prompt to a process that dies before it answers: it does the work itself."""
    process = home.up()
    id = home.remember(PORT)
    with stopped(process):
        hook = home.start_hook("prompt")
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(prompt(QUESTION)).encode())
        hook.stdin.close()
        until(lambda: has_socket(hook))
        process.kill()
    hook.stdin = None
    out, err = hook.communicate(timeout=60)
    assert (hook.returncode, err) == (0, b"")
    assert id in context_of(out)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert home.prompt(QUESTION) == ""  # and what was shown is known without the process


def test_a_process_that_hangs_costs_the_time_limit_and_no_more(home: Home) -> None:
    home.remember(PORT)
    with stopped(home.up()):
        assert home.prompt(QUESTION, TRIVET_HOOK_TIME_LIMIT_MS="200") == ""
        assert failures().last == "no answer within 200 ms"


def test_an_agent_that_does_not_close_its_end(home: Home) -> None:
    """The limit holds from the beginning, and is read from the settings file too."""
    settings = home.store.parent / "trivet.toml"
    settings.write_text('scope = "acme"\nhook_time_limit_ms = 1_50 # a little\n')
    environment = {**os.environ, "TRIVET_CONFIG": str(settings)}
    del environment["TRIVET_HOOK_TIME_LIMIT_MS"]
    command = [sys.executable, "-S", "-I", SCRIPT, "prompt"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as hook:
        assert hook.wait(timeout=60) == 0
        assert hook.stdout is not None
        assert hook.stdout.read() == b""
    assert failures().last == "no answer within 150 ms"


def test_without_the_process_the_answer_is_the_same(home: Home) -> None:
    id = home.remember(PORT)
    assert id in home.prompt(QUESTION)
    assert home.prompt(QUESTION) == ""
    assert request_status() is None  # the setting does not allow to start it


def test_the_first_hook_starts_the_process(home: Home) -> None:
    home.remember(PORT)
    try:
        assert PORT in home.prompt(QUESTION, TRIVET_RESIDENT="hooks")
        assert home.status().hooks == {"prompt answered": 1}
        assert PORT in home.prompt(QUESTION, session="two")
        assert home.status().hooks == {"prompt answered": 2}
    finally:
        assert stop_resident() == "ended"


def test_where_the_process_cannot_be_started_the_hook_works_without_it(home: Home) -> None:
    """As after `su`, where the variable names a folder that is not there."""
    home.remember(PORT)
    assert PORT in home.prompt(
        QUESTION, TRIVET_RESIDENT="hooks", XDG_RUNTIME_DIR=str(home.folder / "not" / "there")
    )
    last = failures().last
    assert last is not None
    assert "did not come up" in last


def test_a_store_that_is_broken(warm: Home) -> None:
    warm.store.write_bytes(b"this is no database at all, and long enough to be one" * 100)
    assert warm.prompt(QUESTION) == ""
    last = failures().last
    assert last is not None
    assert "StoreError" in last


def test_an_agent_that_does_not_read(warm: Home) -> None:
    warm.remember(PORT)
    for resident in ("use", "off"):
        reading, writing = os.pipe()
        os.close(reading)
        ended = subprocess.run(
            [sys.executable, "-S", "-I", SCRIPT, "prompt"],
            input=json.dumps(prompt(QUESTION, resident)).encode(),
            stdout=writing,
            stderr=subprocess.PIPE,
            env={**os.environ, "TRIVET_RESIDENT": resident},
            check=False,
        )
        os.close(writing)
        assert (ended.returncode, ended.stderr) == (0, b"")
        last = failures().last
        assert last is not None
        assert "BrokenPipe" in last


def test_nothing_can_be_written(warm: Home) -> None:
    """Not even the note about it."""
    (warm.store.parent / "data").write_text("a file where a folder should be")
    warm.remember(PORT)
    assert warm.prompt(QUESTION) == ""


def test_the_folder_it_works_in_cannot_pose_as_us(home: Home, tmp_path: Path) -> None:
    """An agent may work in a stranger's repository, which holds a package of our name."""
    home.remember(PORT)
    bad = tmp_path / "repository" / "trivet"
    bad.mkdir(parents=True)
    (bad / "__init__.py").write_text("import pathlib; pathlib.Path('was-here').touch()")
    command = [sys.executable, "-S", "-I", SCRIPT, "prompt"]
    said = json.dumps(prompt(QUESTION)).encode()
    ended = subprocess.run(command, input=said, capture_output=True, cwd=bad.parent, check=True)
    assert PORT in context_of(ended.stdout)
    assert not (bad.parent / "was-here").exists()


class TestInstalled:
    """The very command that `trivet install` wrote, as Claude Code runs it."""

    @pytest.fixture
    def hooks(self, warm: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
        store = tmp_path / "my store.db"
        assert (
            CommandLine(monkeypatch)("install", "claude-code", "--yes", "--path", str(store)).status
            == 0
        )
        settings = json.loads((tmp_path / "claude" / "settings.json").read_text())
        return {
            event: groups[0]["hooks"][0]["command"] for event, groups in settings["hooks"].items()
        }

    def run(self, command: str, said: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps(said).encode(),
            capture_output=True,
            check=True,
        )

    def test_it_answers(self, warm: Home, hooks: dict[str, str], tmp_path: Path) -> None:
        with warm.memory(path=str(tmp_path / "my store.db")) as memory:
            memory.remember(PORT)
            memory.remember("Ana wants short answers.", category="preferences")
        started = {
            "session_id": "s",
            "cwd": "/home/ana/shop",
            "hook_event_name": "SessionStart",
            "source": "startup",
        }
        assert "short answers" in context_of(self.run(hooks["SessionStart"], started).stdout)
        asked = self.run(hooks["UserPromptSubmit"], prompt(QUESTION, "s"))
        assert PORT in context_of(asked.stdout)
        assert asked.stderr == b""
        for event in ("Stop", "PreCompact", "SessionEnd"):
            assert (
                self.run(hooks[event], {"session_id": "s", "hook_event_name": event}).stdout == b""
            )

    def test_a_program_that_is_gone_does_not_block_the_prompt(self, hooks: dict[str, str]) -> None:
        command = hooks["UserPromptSubmit"].replace(shlex.quote(SCRIPT), "/nowhere/hook_client.py")
        assert "/nowhere" in command
        ended = self.run(command, prompt(QUESTION))
        assert (ended.returncode, ended.stdout) == (0, b"")


def test_trivet_hook_is_the_same(warm: Home) -> None:
    warm.remember(PORT)
    said = json.dumps(prompt(QUESTION)).encode()
    command = [sys.executable, "-m", "trivet.cli", "hook", "prompt"]
    ended = subprocess.run(command, input=said, capture_output=True, check=True)
    assert PORT in context_of(ended.stdout)
    ended = subprocess.run(
        [*command, "--path", str(warm.store), "and", "more"],
        input=said,
        capture_output=True,
        check=True,
    )
    assert (ended.stdout, ended.stderr) == (b"", b"")
