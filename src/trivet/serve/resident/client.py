"""Memories and page links through the resident process.

If the process is not running or ends, the client opens the store itself.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trivet import __version__
from trivet.contract import Purge, Remember, Request, Verb, verb_of
from trivet.errors import NotFound, StoreError, TrivetError, UnknownFate
from trivet.models.embed.registry import open_soon
from trivet.serve.resident import protocol as calls
from trivet.serve.resident.hook_client import ConnectionLost, ResidentUnavailable, ask
from trivet.serve.resident.protocol import (
    END,
    LOG,
    PAGE,
    STATUS,
    SUPPORTED,
    PageCall,
    ensure_socket_folder,
    lock_holder,
    socket_file,
    with_absolute_path,
)
from trivet.settings import Settings, load_settings
from trivet.settings.locations import check_exists, is_server
from trivet.trivet import Trivet
from trivet.types import Imported, Progress, Purged, Remembered

if TYPE_CHECKING:
    from trivet.memory.engine import Engine


logger = logging.getLogger("trivet.serve.resident")

# After this time the caller goes on without the process.
START_SECONDS = 20.0
POLL_SECONDS = 0.05


def open_memory(
    path: str | None = None, *, create: bool = True, model_soon: bool = False, **overrides: Any
) -> Trivet:
    """Open a memory, through the resident process where possible.

    `model_soon` loads the embedder in the background if this process will need it.
    """
    settings = load_settings(path=path, **overrides)
    if not create:
        check_exists(settings)
    if SUPPORTED and settings.resident != "off" and not is_server(settings.path):
        if settings.resident == "always":
            start_resident(settings)
        if socket_file().exists():
            return Trivet.through(ResidentStore(with_absolute_path(settings, Path.cwd())))
    if model_soon and not is_server(settings.path):
        open_soon(settings.embedder)
    return Trivet.open(settings=settings)


def is_warm(memory: Trivet) -> bool:
    return isinstance(memory.remote, ResidentStore) and memory.remote.warm


def is_running(seconds: float = 5.0) -> bool:
    try:
        ask(os.environb, (STATUS,), seconds)
    except ResidentUnavailable:
        return False
    return True


def start_resident(settings: Settings, seconds: float = START_SECONDS) -> bool:
    """Start the process if needed; return False if it does not answer in time."""
    try:
        if lock_holder() is None:
            _launch(with_absolute_path(settings, Path.cwd()), seconds)
    except (TrivetError, OSError) as error:
        logger.warning("Cannot start the resident process; continuing without it: %s", error)
        return False
    limit = time.monotonic() + seconds
    while lock_holder() is not None and time.monotonic() < limit:
        if is_running():
            return True
        time.sleep(POLL_SECONDS)  # another process is starting it
    return is_running()


def _launch(settings: Settings, seconds: float) -> None:
    log = os.fsencode(ensure_socket_folder() / LOG)
    hears, says = os.pipe()
    try:
        os.set_inheritable(says, True)
        words = [
            sys.executable,
            "-P",
            "-m",
            "trivet.cli",
            "up",
            "--ready",
            str(says),
            "--path",
            settings.path,
        ]
        os.posix_spawn(
            sys.executable,
            words,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            ],
            setsid=True,
        )
    finally:
        os.close(says)
    select.select([hears], [], [], seconds)  # it writes when ready, or ends
    os.close(hears)


T = TypeVar("T")

# After this time the process counts as hung and the call runs here; what it wrote stays.
CALL_TIMEOUT_SECONDS = 20.0
FATE_UNKNOWN = (
    "The resident process ended during this write, so it is not known whether the write was done."
)


class ResidentStore:
    """A store used through the resident process, or opened here once that is gone."""

    address = None  # this user's own store, not a server's

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._opened_locally: Trivet | None = None
        self._opening = threading.Lock()

    @property
    def warm(self) -> bool:
        return self._opened_locally is None

    def perform(self, request: Request[T]) -> T:
        verb = verb_of(request)
        if self._opened_locally is not None or not calls.is_forwardable(verb):
            return self._local_store().perform(request)
        asked = calls.with_client_id(request)
        call = calls.call_of(self.settings, asked)
        try:
            answer: T = self._ask(verb, msgspec.json.encode(call))
        except ResidentUnavailable as gone:
            answer = self._retry_locally(verb, asked, call, left=isinstance(gone, ConnectionLost))
            # The id was made here: "unchanged" means that the process stored it.
            if isinstance(answer, Remembered) and asked is not request:
                answer = msgspec.structs.replace(answer, status="stored")
        return answer

    def remember_many(self, memories: Iterable[Mapping[str, Any] | Remember]) -> list[Remembered]:
        return self._local_store().remember_many(memories)

    def diff(self, id: str, older: int, newer: int, reveal: bool) -> str:
        return self._local_store().diff(id, older, newer, reveal=reveal)

    def export(self, include_sensitive: bool) -> Iterator[str]:
        return self._local_store().export(include_sensitive=include_sensitive)

    def import_(self, lines: Iterable[str], progress: Progress | None) -> Imported:
        return self._local_store().import_(lines, progress=progress)

    def engine(self) -> Engine:
        return self._local_store().engine

    def close(self) -> None:
        if self._opened_locally is not None:
            self._opened_locally.close()

    def _ask(self, verb: Verb, message: bytes) -> Any:
        parts = (calls.CALL, __version__.encode(), message)
        status, body, *_ = ask(os.environb, parts, CALL_TIMEOUT_SECONDS)
        if status == calls.ERROR:
            raise calls.error_of(body)
        if status == calls.VERSION_MISMATCH and is_older(body.decode()):
            ask(os.environb, (END,), CALL_TIMEOUT_SECONDS)
        if status != calls.OK:
            raise ResidentUnavailable(body.decode(errors="replace"))
        return calls.result_of(verb, body)

    def _retry_locally(self, verb: Verb, asked: Request[Any], call: calls.Call, left: bool) -> Any:
        """Repeat a call that the process may have completed.

        A deduplicated write finds its answer in the store; other calls may be repeated safely.
        """
        try:
            own = self._local_store()
            return (
                calls.result_of(verb, calls.perform(own, call)) if call.once else own.perform(asked)
            )
        except NotFound:
            if left and isinstance(asked, Purge):  # the process has already purged it
                return Purged(
                    id=asked.id, pending=self._local_store().engine.store.upkeep.pending_erasure()
                )
            raise
        except StoreError as error:
            if left and not verb.read_only:
                raise UnknownFate(f"{error} {FATE_UNKNOWN}") from error
            raise

    def _local_store(self) -> Trivet:
        with self._opening:
            if self._opened_locally is None:
                self._opened_locally = Trivet.open(settings=self.settings)
            return self._opened_locally


def is_older(version: str) -> bool:
    return _numbers(version) < _numbers(__version__)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


# Includes opening the store and loading a model.
PAGE_TIMEOUT_SECONDS = 60.0
MAY_START = ("hooks", "always")


def page_link(settings: Settings) -> str | None:
    """Return a link that opens the page signed in, or None if the caller must serve it.

    Starts the process if the settings let hooks start it.
    """
    if not SUPPORTED or settings.resident == "off":
        return None
    if settings.resident in MAY_START and not start_resident(settings):
        return None
    try:
        return _asked(with_absolute_path(settings, Path.cwd()))
    except ResidentUnavailable:
        return None


def _asked(settings: Settings, again: bool = True) -> str | None:
    call = PageCall(settings, calls.call_environment(settings, os.environ))
    parts = (PAGE, __version__.encode(), msgspec.json.encode(call))
    status, body, *_ = ask(os.environb, parts, PAGE_TIMEOUT_SECONDS)
    if status == calls.ERROR:
        raise calls.error_of(body)
    if status == calls.VERSION_MISMATCH and is_older(body.decode()) and again:
        ask(os.environb, (END,), PAGE_TIMEOUT_SECONDS)  # so that this version can start its own
        return (
            _asked(settings, again=False)
            if settings.resident in MAY_START and start_resident(settings)
            else None
        )
    return body.decode() if status == calls.OK else None
