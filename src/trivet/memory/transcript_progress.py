"""How far the rules and the language model have read each conversation, in one local file each."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import msgspec

from trivet.common.clock import now
from trivet.common.files import atomic_write, private_folder
from trivet.common.threads import prepared_type
from trivet.settings import data_folder

# After this long a conversation counts as ended.
MAX_PROGRESS_AGE_SECONDS = 90 * 24 * 3600.0
PROBLEM = "problem.json"


class TranscriptProgress(msgspec.Struct, frozen=True, kw_only=True):
    store: str
    session: str
    path: str
    read_by_rules: int = msgspec.field(default=0, name="read")
    read_by_model: int = msgspec.field(default=0, name="asked")
    project: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The latest background failure, shown by `doctor`."""

    at: str
    text: str


def progress_of(store: str, session: str, path: Path) -> TranscriptProgress:
    """Return the progress, fresh if its file is missing or damaged."""
    fresh = TranscriptProgress(store=store, session=session, path=str(path))
    try:
        found = msgspec.json.decode(
            _file(store, session).read_bytes(), type=prepared_type(TranscriptProgress)
        )
    except (OSError, msgspec.DecodeError):
        return fresh
    return found if found.path == str(path) else fresh


def save_progress(progress: TranscriptProgress) -> None:
    folder = private_folder(_folder())
    _write(_file(progress.store, progress.session), msgspec.json.encode(progress))
    for file in folder.glob("*.json"):
        if file.name != PROBLEM and time.time() - _modified(file) > MAX_PROGRESS_AGE_SECONDS:
            file.unlink(missing_ok=True)


def unread_by_model(store: str) -> list[TranscriptProgress]:
    found = []
    for file in sorted(_folder().glob("*.json")):
        try:
            progress = msgspec.json.decode(
                file.read_bytes(), type=prepared_type(TranscriptProgress)
            )
        except (OSError, msgspec.DecodeError):
            continue  # the problem file, or one that another process is replacing
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
    # A hook must not wait for the disk; a lost file costs only a second reading.
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
        return time.time()  # another process deleted it
