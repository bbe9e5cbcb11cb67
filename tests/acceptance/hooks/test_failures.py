"""Every failure of a hook is silent, exits with 0 within the time limit and is counted."""

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
    "payload",
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
def test_garbage_input_is_silent(warm: Home, payload: bytes) -> None:
    assert warm.hook("prompt", payload) == b""
    assert warm.status().pid


def test_garbage_is_counted(warm: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    warm.hook("prompt", b"{")
    warm.hook("nonsense", b"{}")
    found = failures()
    assert found.moments == {"prompt": 1, "nonsense": 1}
    assert found.last is not None
    assert "nonsense" in found.last
    status = json.loads(CommandLine(monkeypatch)("status", "--json").out)
    assert status["hook_failures"]["count"] == 2
    assert status["resident"]["hooks"]["prompt failed"] >= 1


def test_hook_answers_when_resident_dies_mid_prompt(home: Home) -> None:
    """A hook whose resident process dies before answering does the work itself."""
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
    assert home.prompt(QUESTION) == ""  # the record of shown memories outlives the process


def test_hanging_resident_costs_only_the_time_limit(home: Home) -> None:
    home.remember(PORT)
    with stopped(home.up()):
        assert home.prompt(QUESTION, TRIVET_HOOK_TIME_LIMIT_MS="200") == ""
        assert failures().last == "no answer within 200 ms"


def test_open_stdin_ends_at_the_time_limit(home: Home) -> None:
    """The limit counts from process start and is also read from the settings file."""
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


def test_answer_is_the_same_without_the_resident(home: Home) -> None:
    id = home.remember(PORT)
    assert id in home.prompt(QUESTION)
    assert home.prompt(QUESTION) == ""
    assert request_status() is None  # the setting forbids starting it


def test_the_first_hook_starts_the_process(home: Home) -> None:
    home.remember(PORT)
    try:
        assert PORT in home.prompt(QUESTION, TRIVET_RESIDENT="hooks")
        assert home.status().hooks == {"prompt answered": 1}
        assert PORT in home.prompt(QUESTION, session="two")
        assert home.status().hooks == {"prompt answered": 2}
    finally:
        assert stop_resident() == "ended"


def test_hook_works_when_the_resident_cannot_start(home: Home) -> None:
    """As after `su`, where the environment variable names a missing folder."""
    home.remember(PORT)
    assert PORT in home.prompt(
        QUESTION, TRIVET_RESIDENT="hooks", XDG_RUNTIME_DIR=str(home.folder / "not" / "there")
    )
    last = failures().last
    assert last is not None
    assert "did not start" in last


def test_broken_store_is_silent_and_counted(warm: Home) -> None:
    warm.store.write_bytes(b"this is no database at all, and long enough to be one" * 100)
    assert warm.prompt(QUESTION) == ""
    last = failures().last
    assert last is not None
    assert "StoreError" in last


def test_agent_that_does_not_read_is_counted(warm: Home) -> None:
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


def test_unwritable_data_folder_is_silent(warm: Home) -> None:
    """Not even the failure record can be written."""
    (warm.store.parent / "data").write_text("a file where a folder should be")
    warm.remember(PORT)
    assert warm.prompt(QUESTION) == ""


def test_working_folder_cannot_shadow_the_package(home: Home, tmp_path: Path) -> None:
    """An agent may work in an untrusted repository that contains a package named trivet."""
    home.remember(PORT)
    bad = tmp_path / "repository" / "trivet"
    bad.mkdir(parents=True)
    (bad / "__init__.py").write_text("import pathlib; pathlib.Path('was-here').touch()")
    command = [sys.executable, "-S", "-I", SCRIPT, "prompt"]
    payload = json.dumps(prompt(QUESTION)).encode()
    ended = subprocess.run(command, input=payload, capture_output=True, cwd=bad.parent, check=True)
    assert PORT in context_of(ended.stdout)
    assert not (bad.parent / "was-here").exists()


class TestInstalled:
    """The command that `trivet install` wrote, run the way Claude Code runs it."""

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

    def run(self, command: str, payload: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps(payload).encode(),
            capture_output=True,
            check=True,
        )

    def test_installed_hooks_answer(
        self, warm: Home, hooks: dict[str, str], tmp_path: Path
    ) -> None:
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
        result = self.run(hooks["UserPromptSubmit"], prompt(QUESTION, "s"))
        assert PORT in context_of(result.stdout)
        assert result.stderr == b""
        for event in ("Stop", "PreCompact", "SessionEnd"):
            assert (
                self.run(hooks[event], {"session_id": "s", "hook_event_name": event}).stdout == b""
            )

    def test_missing_program_does_not_block_the_prompt(self, hooks: dict[str, str]) -> None:
        command = hooks["UserPromptSubmit"].replace(shlex.quote(SCRIPT), "/nowhere/hook_client.py")
        assert "/nowhere" in command
        ended = self.run(command, prompt(QUESTION))
        assert (ended.returncode, ended.stdout) == (0, b"")


def test_trivet_hook_command_matches_the_script(warm: Home) -> None:
    warm.remember(PORT)
    payload = json.dumps(prompt(QUESTION)).encode()
    command = [sys.executable, "-m", "trivet.cli", "hook", "prompt"]
    ended = subprocess.run(command, input=payload, capture_output=True, check=True)
    assert PORT in context_of(ended.stdout)
    ended = subprocess.run(
        [*command, "--path", str(warm.store), "and", "more"],
        input=payload,
        capture_output=True,
        check=True,
    )
    assert (ended.stdout, ended.stderr) == (b"", b"")
