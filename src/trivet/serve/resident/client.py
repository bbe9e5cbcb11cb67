"""What stands behind a memory while the resident process runs; when it goes, the store is opened here instead."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from trivet import __version__
from trivet.contract import Remember, Request, Verb, verb_of
from trivet.errors import NotFound
from trivet.serve.resident import calls
from trivet.serve.resident.hook_client import Gone, ask
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Imported, Progress, Remembered

if TYPE_CHECKING:
    from trivet.memory.engine import Engine

T = TypeVar("T")

# A process that says nothing for so long hangs. The call is done here then; what was written already stays as it is.
PATIENCE_SECONDS = 20.0
END = b"end"


class Resident:
    """Asks the resident process what it can be asked, and does the rest, and all of it once that is gone, itself."""

    address = None  # it is this user's own store, not a server's

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._own: Trivet | None = None
        self._opening = threading.Lock()

    @property
    def warm(self) -> bool:
        """Whether the process still does the work."""
        return self._own is None

    def perform(self, request: Request[T]) -> T:
        verb = verb_of(request)
        if self._own is not None or not calls.can_be_asked(verb):
            return self._opened().perform(request)
        asked = calls.repeatable(request)
        try:
            answer: T = self._ask(verb, calls.message_of(self.settings, asked))
            return answer
        except Gone:
            again: T = self._again(verb, asked)
            return again

    def remember_many(self, memories: Iterable[Mapping[str, Any] | Remember]) -> list[Remembered]:
        return self._opened().remember_many(memories)

    def diff(self, id: str, older: int, newer: int, reveal: bool) -> str:
        return self._opened().diff(id, older, newer, reveal=reveal)

    def export(self, include_sensitive: bool) -> Iterator[str]:
        return self._opened().export(include_sensitive=include_sensitive)

    def import_(self, lines: Iterable[str], progress: Progress | None) -> Imported:
        return self._opened().import_(lines, progress=progress)

    def engine(self) -> Engine:
        return self._opened().engine

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def _ask(self, verb: Verb, message: bytes) -> Any:
        parts = (calls.CALL, __version__.encode(), message)
        status, body, *_ = ask(os.environb, parts, PATIENCE_SECONDS)
        if status == calls.ERROR:
            raise calls.error_of(body)
        if status == calls.OLD and is_older(body.decode()):
            ask(os.environb, (END,), PATIENCE_SECONDS)
        if status != calls.OK:
            raise Gone(body.decode(errors="replace"))
        return calls.result_of(verb, body)

    def _again(self, verb: Verb, request: Request[Any]) -> Any:
        """The client cannot know how far the process came, so everything here may be done twice without harm."""
        try:
            return self._opened().perform(request)
        except NotFound:
            if verb.result is None:  # purge, unlink, unshare: done again, they find nothing left to do
                return None
            raise

    def _opened(self) -> Trivet:
        with self._opening:
            if self._own is None:
                self._own = Trivet.open(settings=self.settings)
            return self._own


def is_older(version: str) -> bool:
    """Whether the process runs an earlier version than this one, and should make room for it."""
    return _numbers(version) < _numbers(__version__)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
