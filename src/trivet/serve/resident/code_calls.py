"""Code search by way of the resident process: a question about a folder as a message, and its answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trivet import __version__
from trivet.code.questions import Question
from trivet.code.types import CodeAnswer
from trivet.serve.resident import calls
from trivet.serve.resident.hook_client import Gone, ask
from trivet.serve.resident.paths import SUPPORTED, socket_file
from trivet.settings import Settings

CODE = b"code"
# A switch to another branch is indexed within this time, or by the program that asks.
PATIENCE_SECONDS = 20.0
# It only takes note of a folder, and reads it afterwards.
NOTE_SECONDS = 1.0
# What decides which files a tree has and where its index lies, besides the folder.
_VARIABLES = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TRIVET_CODE_CACHE")


class CodeCall(msgspec.Struct, frozen=True):
    """`question` None asks to keep the folder's index open from now on."""

    folder: str
    surroundings: Mapping[str, str]
    question: Question | None = None


def asked(settings: Settings, folder: Path, question: Question) -> CodeAnswer | None:
    """The resident process's answer; None where the caller has to search itself.

    It answers only for folders whose index it has open, so that a first index is made where its progress is seen.
    """
    body = _sent(settings, folder, question, PATIENCE_SECONDS)
    return None if body is None else msgspec.json.decode(body, type=CodeAnswer)


def noted(settings: Settings, folder: Path) -> None:
    """Tells the resident process that a folder is searched: it has the index open for the next question."""
    _sent(settings, folder, None, NOTE_SECONDS)


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    git = [name for name in environment if name.startswith("GIT_")]
    return {name: environment[name] for name in sorted((*_VARIABLES, *git)) if name in environment}


def _sent(settings: Settings, folder: Path, question: Question | None, seconds: float) -> bytes | None:
    if not SUPPORTED or settings.resident == "off" or not socket_file().exists():
        return None
    call = CodeCall(os.path.realpath(folder), surroundings(os.environ), question)
    try:
        parts = (CODE, __version__.encode(), msgspec.json.encode(call))
        status, body, *_ = ask(os.environb, parts, seconds)
    except Gone:
        return None
    if status == calls.ERROR:
        raise calls.error_of(body)
    return body if status == calls.OK and question is not None else None
