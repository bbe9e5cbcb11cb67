"""A memory through the resident process where it runs and the settings allow, else straight from its store."""

from __future__ import annotations

import logging
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from trivet.errors import TrivetError
from trivet.models.embed.registry import open_soon
from trivet.serve.resident.client import Resident
from trivet.serve.resident.hook_client import Gone, ask
from trivet.serve.resident.paths import LOG, SUPPORTED, holder, made_folder, socket_file
from trivet.settings import Settings, load_settings
from trivet.settings.address import is_server
from trivet.settings.existing_store import check_exists
from trivet.trivet import Trivet

logger = logging.getLogger("trivet.serve.resident")

STATUS = b"status"
READY = b"ready"
# How long its start may take before the caller goes on without it.
START_SECONDS = 20.0
LOOK_SECONDS = 0.05


def open_memory(path: str | None = None, *, create: bool = True, model_soon: bool = False, **overrides: Any) -> Trivet:
    """As Trivet.open, for programs of this user: the command line and MCP on standard input and output.

    `model_soon`: the embedder is going to be asked. Where no other process does that, it is opened beside the rest.
    """
    settings = load_settings(path=path, **overrides)
    if not create:
        check_exists(settings)
    if SUPPORTED and settings.resident != "off" and not is_server(settings.path):
        if settings.resident == "always":
            start(settings)
        if socket_file().exists():
            return Trivet.through(Resident(whole_path(settings, Path.cwd())))
    if model_soon and not is_server(settings.path):
        open_soon(settings.embedder)
    return Trivet.open(settings=settings)


def is_warm(memory: Trivet) -> bool:
    """Whether the resident process does its work."""
    return isinstance(memory.remote, Resident) and memory.remote.warm


def whole_path(settings: Settings, folder: Path) -> Settings:
    """The settings as they mean the same from any folder."""
    if "://" in settings.path:
        return settings
    return msgspec.structs.replace(settings, path=str(folder / Path(settings.path).expanduser()))


def answers(seconds: float = 5.0) -> bool:
    """Whether the resident process runs and speaks."""
    try:
        ask(os.environb, (STATUS,), seconds)
    except Gone:
        return False
    return True


def start(settings: Settings, seconds: float = START_SECONDS) -> bool:
    """Starts it unless it runs, and waits until it answers. False: it did not come up in time, or at all."""
    try:
        if holder() is None:
            _launch(whole_path(settings, Path.cwd()), seconds)
    except (TrivetError, OSError) as error:
        logger.warning("The resident process cannot be started, and is done without: %s", error)
        return False
    limit = time.monotonic() + seconds
    while holder() is not None and time.monotonic() < limit:
        if answers():
            return True
        time.sleep(LOOK_SECONDS)  # another process is just starting it
    return answers()


def _launch(settings: Settings, seconds: float) -> None:
    """In a session of its own and without a terminal: it outlives the program that needed it first."""
    log = os.fsencode(made_folder() / LOG)
    hears, says = os.pipe()
    try:
        os.set_inheritable(says, True)
        words = [sys.executable, "-P", "-m", "trivet.cli", "up", "--ready", str(says), "--path", settings.path]
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
    select.select([hears], [], [], seconds)  # it says that it is ready, or closes its end by ending
    os.close(hears)
