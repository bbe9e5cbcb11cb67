"""How far each conversation was read, by the rules and by the language model: one small file each, on this machine.

The files are not in the store, which may be on a server: the transcripts are here. If a file is lost, the conversation
is read again, and the inbox recognises what was proposed before.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import msgspec

from trivet.common.clock import now
from trivet.common.files import atomic_write, private_folder
from trivet.common.threads import prepared_type
from trivet.settings import data_folder

# A conversation that was not continued for so long is taken to be over.
MAX_PROGRESS_AGE_SECONDS = 90 * 24 * 3600.0
PROBLEM = "problem.json"


class TranscriptProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of a transcript that the rules and the language model have read."""

    store: str
    session: str
    path: str
    read_by_rules: int = msgspec.field(default=0, name="read")
    read_by_model: int = msgspec.field(default=0, name="asked")
    project: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong last in the background; `doctor` shows it."""

    at: str
    text: str


def progress_of(store: str, session: str, path: Path) -> TranscriptProgress:
    """The progress in this transcript; at its beginning if the conversation is new or its file is damaged."""
    fresh = TranscriptProgress(store=store, session=session, path=str(path))
    try:
        found = msgspec.json.decode(
            _file(store, session).read_bytes(), type=prepared_type(TranscriptProgress)
        )
    except (OSError, msgspec.DecodeError):
        return fresh
    return found if found.path == str(path) else fresh


def save_progress(progress: TranscriptProgress) -> None:
    """Replaces the file atomically, and deletes the files of conversations long over."""
    folder = private_folder(_folder())
    _write(_file(progress.store, progress.session), msgspec.json.encode(progress))
    for file in folder.glob("*.json"):
        if file.name != PROBLEM and time.time() - _modified(file) > MAX_PROGRESS_AGE_SECONDS:
            file.unlink(missing_ok=True)


def unread_by_model(store: str) -> list[TranscriptProgress]:
    """Conversations of this store that the language model has not read to the end."""
    found = []
    for file in sorted(_folder().glob("*.json")):
        try:
            progress = msgspec.json.decode(
                file.read_bytes(), type=prepared_type(TranscriptProgress)
            )
        except (OSError, msgspec.DecodeError):
            continue  # the file of a problem, or one that is being replaced
        if progress.store == store and progress.read_by_model < progress.read_by_rules:
            found.append(progress)
    return found


def note_problem(text: str) -> None:
    folder = private_folder(_folder())
    _write(folder / PROBLEM, msgspec.json.encode(Problem(at=now(), text=text)))


def forget_problem() -> None:
    (_folder() / PROBLEM).unlink(missing_ok=True)


def last_problem() -> Problem | None:
    try:
        return msgspec.json.decode((_folder() / PROBLEM).read_bytes(), type=prepared_type(Problem))
    except (OSError, msgspec.DecodeError):
        return None


def _write(file: Path, data: bytes) -> None:
    # Not durable: a hook should not wait for the disk, and a lost file only means that a conversation is read again.
    with atomic_write(file, durable=False) as stream:
        stream.write(data)


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
