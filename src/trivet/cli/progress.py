"""A progress bar on standard error. It appears only on a terminal, and only if the work takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SOON_SECONDS = 1.0


class LateProgress:
    """Call it with how many more are done. `total` gets how many that is and says how many it will be, if known."""

    def __init__(self, label: str, total: Callable[[int], int | None], after: float = SOON_SECONDS) -> None:
        self._label = label
        self._total = total
        self._after = after
        self._started = time.monotonic()
        self._done = 0
        self._bar: tuple[Progress, TaskID] | None = None

    def __call__(self, count: int) -> None:
        self._done += count
        if self._bar is None and sys.stderr.isatty() and time.monotonic() - self._started > self._after:
            self._bar = self._appear()
        if self._bar is not None:
            bar, task = self._bar
            bar.update(task, completed=self._done)

    def _appear(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        bar.start()
        return bar, bar.add_task(self._label, total=self._total(self._done))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar[0].stop()
