"""A watching command in its own process; each report is one JSON value."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from typing import Any

from support.waiting import LIMIT_SECONDS


class Watching:
    def __init__(self, *arguments: str, **environment: str) -> None:
        command = [sys.executable, "-m", "trivet.cli", *arguments, "--watch", "--json"]
        environ = {**os.environ, **environment}
        # Tests in the background of a shell inherit ignored interrupts.
        heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, env=environ, text=True, preexec_fn=heard
        )

    def report(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        text = ""
        for row in self._process.stdout:
            text += row
            if row.rstrip() == "}":
                found: dict[str, Any] = json.loads(text)
                return found
        raise AssertionError(f"it ended: {text}")

    def end(self) -> int:
        self._process.send_signal(signal.SIGINT)
        status = self._process.wait(LIMIT_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(LIMIT_SECONDS)
