"""What stands behind a memory while the resident process runs; when it goes, the store is opened here instead."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from trivet import __version__
from trivet.errors import NotFound
from trivet.serve.resident import calls
from trivet.serve.resident.hook_client import Gone, ask
from trivet.settings import Settings
from trivet.trivet import Trivet

# A process that says nothing for so long hangs. The call is done here then; what was written already stays as it is.
PATIENCE_SECONDS = 20.0
# Done again, they find nothing left to do.
_GONE_IS_DONE = ("purge", "unlink", "unshare")
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

    def do(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        verb = method.__name__
        if self._own is not None or not calls.can_be_asked(verb):
            return method(self._opened(), *args, **kwargs)
        message = calls.message_of(self.settings, method, args, kwargs)
        try:
            return self._asked(verb, message)
        except Gone:
            return self._again(method, args, kwargs, message)

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def _asked(self, verb: str, message: bytes) -> Any:
        parts = (calls.CALL, __version__.encode(), message)
        status, body, *_ = ask(os.environb, parts, PATIENCE_SECONDS)
        if status == calls.ERROR:
            raise calls.error_of(body)
        if status == calls.OLD and is_older(body.decode()):
            ask(os.environb, (END,), PATIENCE_SECONDS)
        if status != calls.OK:
            raise Gone(body.decode(errors="replace"))
        return calls.result_of(verb, body)

    def _again(
        self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], message: bytes
    ) -> Any:
        """Nobody knows how far the process came, so everything here may be done twice without harm."""
        verb, own = method.__name__, self._opened()
        if verb == calls.DRAIN:
            return method(own, *args, **kwargs)
        try:
            return getattr(own, verb)(**calls.repeated(message))
        except NotFound:
            if verb in _GONE_IS_DONE:
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
