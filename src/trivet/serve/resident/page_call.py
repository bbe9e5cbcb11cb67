"""Asking the resident process for the page over a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trivet import __version__
from trivet.serve.resident import calls
from trivet.serve.resident.client import END, is_older
from trivet.serve.resident.connect import start, whole_path
from trivet.serve.resident.hook_client import Gone, ask
from trivet.serve.resident.paths import SUPPORTED
from trivet.settings import Settings

PAGE = b"page"
# It may have to open the store and load a model first.
PATIENCE_SECONDS = 60.0
MAY_START = ("hooks", "always")


class PageCall(msgspec.Struct, frozen=True):
    settings: Settings
    surroundings: Mapping[str, str]


def page_link(settings: Settings) -> str | None:
    """An address that opens the page signed in, from the resident process; None where the caller has to serve it.

    The process is started where the settings let hooks start it.
    """
    if not SUPPORTED or settings.resident == "off":
        return None
    if settings.resident in MAY_START and not start(settings):
        return None
    try:
        return _asked(whole_path(settings, Path.cwd()))
    except Gone:
        return None


def _asked(settings: Settings, again: bool = True) -> str | None:
    call = PageCall(settings, calls.surroundings(settings, os.environ))
    parts = (PAGE, __version__.encode(), msgspec.json.encode(call))
    status, body, *_ = ask(os.environb, parts, PATIENCE_SECONDS)
    if status == calls.ERROR:
        raise calls.error_of(body)
    if status == calls.OLD and is_older(body.decode()) and again:
        ask(os.environb, (END,), PATIENCE_SECONDS)  # it makes room for one of this version
        return _asked(settings, again=False) if settings.resident in MAY_START and start(settings) else None
    return body.decode() if status == calls.OK else None
