"""What stands behind a memory while the resident process runs; when it goes, the store is opened here instead."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trivet import __version__
from trivet.contract import Purge, Remember, Request, Verb, verb_of
from trivet.errors import NotFound, StoreError, UnknownFate
from trivet.serve.resident import calls
from trivet.serve.resident.hook_client import Gone, LeftInTheMiddle, ask
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Imported, Progress, Purged, Remembered

if TYPE_CHECKING:
    from trivet.memory.engine import Engine

T = TypeVar("T")

# A process that says nothing for so long hangs. The call is done here then; what was written already stays as it is.
PATIENCE_SECONDS = 20.0
END = b"end"
BEGUN = "The resident process had begun with it and went: it is not known whether the write was done."


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
        call = calls.call_of(self.settings, asked)
        try:
            answer: T = self._ask(verb, msgspec.json.encode(call))
        except Gone as gone:
            answer = self._again(verb, asked, call, left=isinstance(gone, LeftInTheMiddle))
            if isinstance(answer, Remembered) and asked is not request:  # its id was made here, so it is ours
                answer = msgspec.structs.replace(answer, status="stored")
        return answer

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

    def _again(self, verb: Verb, asked: Request[Any], call: calls.Call, left: bool) -> Any:
        """How far the process came is not known. A write that acts once finds its answer in the store, if it was done;
        what else may be done twice without harm."""
        try:
            own = self._opened()
            return calls.result_of(verb, calls.perform(own, call)) if call.once else own.perform(asked)
        except NotFound:
            if left and isinstance(asked, Purge):  # done already: there is nothing left to do
                return Purged(id=asked.id, pending=self._opened().engine.store.upkeep.pending_erasure())
            raise
        except StoreError as error:
            if left and not verb.read_only:
                raise UnknownFate(f"{error} {BEGUN}") from error
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
