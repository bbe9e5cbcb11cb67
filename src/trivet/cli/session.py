"""The session of one command: its store, output and embedding."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from trivet import Trivet, load_settings
from trivet.cli.terminal import Line, warn, write_json, write_lines
from trivet.errors import InvalidInput, TrivetError
from trivet.settings.locations import is_file, without_password

logger = logging.getLogger("trivet.cli")


class Session:
    """One command's store, opened at first use, and output mode."""

    def __init__(self, path: str | None, as_json: bool, creates: bool = False) -> None:
        self.path = path
        self.as_json = as_json
        self.model_soon = False  # whether the command will use the embedder
        self.creates = creates  # whether the command may create the store

    @cached_property
    def memory(self) -> Trivet:
        from trivet.serve.resident.client import open_memory

        return open_memory(
            self.path, create=self.creates, model_soon=self.model_soon, background=False
        )

    @property
    def file(self) -> Path:
        """Return the store's file; raise if the store is a server."""
        path = load_settings(path=self.path).path
        if not is_file(path):
            raise InvalidInput(
                f"{without_password(path)} is a server, but this command works on a store file. "
                "Run it where the server's store is."
            )
        return Path(path).expanduser()

    def show(self, value: Any, lines: Callable[[], Iterable[Line]]) -> None:
        """Print the value as JSON, or the lines for people, built only if printed."""
        if self.as_json:
            write_json(value)
        else:
            write_lines(lines())

    def embed_pending(self) -> None:
        """Read and embed what a write left pending, unless a server or hosted embedder does it.

        The answer is printed and the memory stored by now, so a failure is only a warning.
        """
        from trivet.serve.resident.client import is_warm

        if self.memory.server:
            return
        try:
            if is_warm(self.memory):
                self.memory.drain()
                _warn_background_failure(self.memory.stats().last_error)
                return
            from trivet.cli.terminal import DelayedProgress
            from trivet.memory.admin.maintenance import read_now

            engine = self.memory.engine
            if not engine.embedding.local:
                read_now(engine)
                return
            with DelayedProgress(
                "embedding", lambda done: done + self.memory.stats().not_embedded
            ) as progress:
                self.memory.drain(progress=progress)
        except TrivetError as error:
            _warn_not_embedded(str(error))
            return
        _warn_background_failure(engine.worker.last_error)

    def close(self) -> None:
        if "memory" in self.__dict__:
            self.memory.close()

    def save_index_if_missing(self) -> None:
        """Save the search index if missing, so that the next process need not build it."""
        if "memory" in self.__dict__ and self.memory.remote is None:
            try:
                self.memory.engine.store.upkeep.renew_index(only_if_missing=True)
            except TrivetError as error:  # the answer is printed; the next command tries again
                logger.info("The index file could not be written: %s", error)


def _warn_background_failure(error: str | None) -> None:
    if error:
        _warn_not_embedded(error)


def _warn_not_embedded(reason: str) -> None:
    warn(f"stored, but not embedded yet, so recall finds it by its words only: {reason}")
