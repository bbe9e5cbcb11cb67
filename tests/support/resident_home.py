"""A test's own user environment: settings, store and socket folder, with real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from support.waiting import LIMIT_SECONDS
from trivet import Trivet
from trivet.cli.processes import request_status
from trivet.serve.resident import hook_client
from trivet.serve.resident.client import open_memory
from trivet.serve.resident.server import Status

PATIENCE = 60.0
SCRIPT = str(Path(hook_client.__file__))
SETTINGS = {
    "TRIVET_EMBEDDER": "none",
    "TRIVET_RESIDENT": "use",
    "TRIVET_HOOK_TIME_LIMIT_MS": "60000",
    "TRIVET_SECRETS_KEYRING": "false",
}


def start_resident(environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the real process and wait until it is ready."""
    hears, says = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "trivet.cli", "up", "--ready", str(says)],
        env=environment,
        pass_fds=(says,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    os.close(says)
    said = os.read(hears, 100)
    os.close(hears)
    assert said == b"ready", process.communicate(timeout=LIMIT_SECONDS)[1]
    return process


def stop_resident(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate(timeout=LIMIT_SECONDS)


class Home:
    """The environment of one user.

    It also applies to the test's own process, which can connect like any program of the user.
    """

    def __init__(self, folder: Path, store: Path) -> None:
        self.folder = folder
        self.store = store
        self._up: list[subprocess.Popen[bytes]] = []

    @property
    def socket(self) -> Path:
        return self.folder / "trivet" / "resident.sock"

    def up(self, **environment: str) -> subprocess.Popen[bytes]:
        process = start_resident({**os.environ, **environment})
        self._up.append(process)
        return process

    def memory(self, **settings: Any) -> Trivet:
        """Open the memory like the command line and MCP do."""
        return open_memory(**settings)

    def status(self) -> Status:
        found = request_status()
        assert found is not None
        return found

    def remember(self, content: str, **more: Any) -> str:
        with self.memory() as memory:
            return memory.remember(content, **more).id

    def start_hook(self, moment: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start the hook as installed: Python alone with the script."""
        return subprocess.Popen(
            [sys.executable, "-S", "-I", SCRIPT, moment],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def hook(self, moment: str, said: Mapping[str, Any] | bytes, **environment: str) -> bytes:
        given = said if isinstance(said, bytes) else json.dumps(said).encode()
        process = self.start_hook(moment, **environment)
        out, err = process.communicate(given, timeout=PATIENCE)
        assert (process.returncode, err) == (0, b"")
        return out

    def prompt(self, text: str, session: str = "one", **environment: str) -> str:
        """Return what the agent's model would read."""
        return context_of(self.hook("prompt", prompt(text, session), **environment))

    def start(
        self,
        source: str = "startup",
        session: str = "one",
        cwd: str = "/home/ana/shop",
        **variables: str,
    ) -> str:
        said = {
            "session_id": session,
            "cwd": cwd,
            "hook_event_name": "SessionStart",
            "source": source,
        }
        return context_of(self.hook("start", said, **variables))

    def end(self) -> None:
        for process in self._up:
            stop_resident(process)


def prompt(text: str, session: str = "one") -> dict[str, str]:
    """Return the event as Claude Code sends it."""
    return {
        "session_id": session,
        "transcript_path": f"/home/ana/.claude/projects/shop/{session}.jsonl",
        "cwd": "/home/ana/shop",
        "hook_event_name": "UserPromptSubmit",
        "prompt": text,
    }


def context_of(out: bytes) -> str:
    return str(json.loads(out)["hookSpecificOutput"]["additionalContext"]) if out else ""


def has_socket(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a hook has opened its socket to the resident process."""
    with contextlib.suppress(FileNotFoundError):
        entries = list(Path(f"/proc/{process.pid}/fd").iterdir())
        return any(str(entry.readlink()).startswith("socket:") for entry in entries)
    return False


@contextlib.contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Suspend the process, so that it hangs."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        yield
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
