"""How far each conversation was read, by the rules and by the language model: one small file each, on this machine.

Not in the store, which may be a server's: the transcripts are here. If a file is lost, the conversation is read again,
and what was proposed before is known.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from pathlib import Path

import msgspec

from trivet.clock import now
from trivet.settings import data_folder

# A conversation that was not continued for so long is over.
KEPT_SECONDS = 90 * 24 * 3600.0
PROBLEM = "problem.json"


class Position(msgspec.Struct, frozen=True, kw_only=True):
    store: str
    session: str
    path: str
    read: int = 0
    asked: int = 0
    project: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong last while nobody was looking."""

    at: str
    text: str


def position_of(store: str, session: str, path: Path) -> Position:
    """Of a conversation that was not met before, or whose note is damaged, the beginning."""
    fresh = Position(store=store, session=session, path=str(path))
    try:
        found = msgspec.json.decode(_file(store, session).read_bytes(), type=Position)
    except (OSError, msgspec.DecodeError):
        return fresh
    return found if found.path == str(path) else fresh


def keep(position: Position) -> None:
    """In place of the old one, never half; those of conversations long over go."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(_file(position.store, position.session), msgspec.json.encode(position))
    for file in folder.glob("*.json"):
        if file.name != PROBLEM and time.time() - _modified(file) > KEPT_SECONDS:
            file.unlink(missing_ok=True)


def not_asked(store: str) -> list[Position]:
    """Conversations of this store that the language model has not read to the end."""
    found = []
    for file in sorted(_folder().glob("*.json")):
        try:
            position = msgspec.json.decode(file.read_bytes(), type=Position)
        except (OSError, msgspec.DecodeError):
            continue  # the note of a problem, or one that is being replaced
        if position.store == store and position.asked < position.read:
            found.append(position)
    return found


def note_problem(text: str) -> None:
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(folder / PROBLEM, msgspec.json.encode(Problem(at=now(), text=text)))


def forget_problem() -> None:
    (_folder() / PROBLEM).unlink(missing_ok=True)


def last_problem() -> Problem | None:
    try:
        return msgspec.json.decode((_folder() / PROBLEM).read_bytes(), type=Problem)
    except (OSError, msgspec.DecodeError):
        return None


def _write(file: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".position-")
    with os.fdopen(handle, "wb") as new:
        new.write(data)
    Path(name).replace(file)


def _folder() -> Path:
    return data_folder() / "conversations"


def _file(store: str, session: str) -> Path:
    name = hashlib.sha256("\n".join((store, session)).encode()).hexdigest()[:32]
    return _folder() / f"{name}.json"


def _modified(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return time.time()  # another process took it away
