"""Code search for the command line and MCP, by the resident process or in this one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from trivet import __version__
from trivet.code.types import CodeAnswer, Question
from trivet.errors import InvalidInput
from trivet.serve.resident import protocol as calls
from trivet.serve.resident.hook_client import ResidentUnavailable, ask
from trivet.serve.resident.protocol import SUPPORTED, socket_file
from trivet.settings import Settings

if TYPE_CHECKING:
    from trivet.code.code_index import CodeIndex


Progress = Callable[[int, int], None]


class CodeSearch:
    """Code search that keeps the last index open that it opened itself."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._own: tuple[Path, CodeIndex] | None = None
        self._lock = threading.Lock()

    def ask(self, folder: Path, question: Question, progress: Progress | None = None) -> CodeAnswer:
        answered = ask_resident(self._settings, folder, question)
        if answered is not None:
            self.close()
            return answered
        with self._lock:
            found = self._ask_here(folder, question, progress)
        notify_resident(self._settings, folder)
        return found

    def close(self) -> None:
        with self._lock:
            if self._own is not None:
                self._own[1].close()
            self._own = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask_here(self, folder: Path, question: Question, progress: Progress | None) -> CodeAnswer:
        from trivet.code.code_index import CodeIndex
        from trivet.code.types import answer

        if self._own is None or self._own[0] != folder:
            if self._own is not None:
                self._own[1].close()
            self._own = folder, CodeIndex.open(folder)
        index = self._own[1]
        index.refresh(progress)
        return answer(index, question)


def check_project_folder(folder: Path) -> Path:
    """Return the resolved folder; refuse the home folder and the root.

    Some programs start MCP servers in the user's home.
    """
    real = folder.resolve()
    if real in (Path.home().resolve(), Path(real.anchor)):
        raise InvalidInput(
            f"{real} is not a project, and indexing would read all of it. Open a project in the "
            "agent's program, or start `trivet mcp` in the project's folder."
        )
    return real


CODE = b"code"
# Enough to index a switch of branches.
CODE_TIMEOUT_SECONDS = 20.0
# The process only records the folder.
NOTE_SECONDS = 1.0
# Besides the folder, these decide which files a tree has and where its index is.
_INDEX_VARIABLES = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TRIVET_CODE_CACHE")


class CodeCall(msgspec.Struct, frozen=True):
    """A question about a folder; without one, a request to keep its index open."""

    folder: str
    environment: Mapping[str, str]
    question: Question | None = None


def ask_resident(settings: Settings, folder: Path, question: Question) -> CodeAnswer | None:
    """Return the resident process's answer, or None if the caller must search itself."""
    body = _send(settings, folder, question, CODE_TIMEOUT_SECONDS)
    return None if body is None else msgspec.json.decode(body, type=CodeAnswer)


def notify_resident(settings: Settings, folder: Path) -> None:
    _send(settings, folder, None, NOTE_SECONDS)


def index_environment(environment: Mapping[str, str]) -> dict[str, str]:
    git = [name for name in environment if name.startswith("GIT_")]
    return {
        name: environment[name] for name in sorted((*_INDEX_VARIABLES, *git)) if name in environment
    }


def _send(
    settings: Settings, folder: Path, question: Question | None, seconds: float
) -> bytes | None:
    if not SUPPORTED or settings.resident == "off" or not socket_file().exists():
        return None
    call = CodeCall(os.path.realpath(folder), index_environment(os.environ), question)
    try:
        parts = (CODE, __version__.encode(), msgspec.json.encode(call))
        status, body, *_ = ask(os.environb, parts, seconds)
    except ResidentUnavailable:
        return None
    if status == calls.ERROR:
        raise calls.error_of(body)
    return body if status == calls.OK and question is not None else None
