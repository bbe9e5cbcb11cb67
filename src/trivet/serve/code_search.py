"""Code search for the programs of this user: the command line and MCP on standard input and output.

The resident process answers where it runs and knows the folder; otherwise the index is opened here. Both give the same
answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from trivet.code.questions import Question
from trivet.code.types import CodeAnswer
from trivet.errors import InvalidInput
from trivet.serve.resident import code_calls
from trivet.settings import Settings

if TYPE_CHECKING:
    from trivet.code.code_index import CodeIndex

Progress = Callable[[int, int], None]


class CodeSearch:
    """Keeps the index of the last folder open that it had to search itself."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._own: tuple[Path, CodeIndex] | None = None
        self._lock = threading.Lock()

    def ask(self, folder: Path, question: Question, progress: Progress | None = None) -> CodeAnswer:
        """The answer about the tree as it is now: what changed in it is indexed first."""
        answered = code_calls.asked(self._settings, folder, question)
        if answered is not None:
            self.close()
            return answered
        with self._lock:
            found = self._ask_here(folder, question, progress)
        code_calls.noted(self._settings, folder)
        return found

    def close(self) -> None:
        with self._lock:
            if self._own is not None:
                self._own[1].close()
            self._own = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask_here(self, folder: Path, question: Question, progress: Progress | None) -> CodeAnswer:
        from trivet.code.code_index import CodeIndex
        from trivet.code.questions import answer

        if self._own is None or self._own[0] != folder:
            if self._own is not None:
                self._own[1].close()
            self._own = folder, CodeIndex.open(folder)
        index = self._own[1]
        index.refresh(progress)
        return answer(index, question)


def project(folder: Path) -> Path:
    """The folder, unless it is one that no project is: some programs start their servers in the user's home."""
    real = folder.resolve()
    if real in (Path.home().resolve(), Path(real.anchor)):
        raise InvalidInput(
            f"{real} is no project, and all of it would be indexed. Open a project in the agent's program, or start "
            "`trivet mcp` in its folder."
        )
    return real
