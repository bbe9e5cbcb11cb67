"""Where the resident process of this user lives, and the lock that says whether it does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trivet.errors import Conflict, InvalidInput, StoreError
from trivet.serve.resident import hook_client

SUPPORTED = sys.platform != "win32"
LOCK = "resident.lock"
LOG = "resident.log"


def socket_file() -> Path:
    return Path(os.fsdecode(hook_client.socket_path(os.environb)))


def made_folder() -> Path:
    """The folder of the socket, for this user alone. One that others made, or may enter, is not used."""
    if not SUPPORTED:
        raise InvalidInput("There is no resident process on this system: it needs unix sockets. All works without it.")
    file = socket_file()
    if len(os.fsencode(file)) > hook_client.LONGEST_PATH:
        raise InvalidInput(f"{file} is too long for a socket. Set XDG_RUNTIME_DIR to a shorter folder.")
    folder = file.parent
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be made: {error.strerror}. Set XDG_RUNTIME_DIR to a folder of yours."
        ) from None
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        raise StoreError(
            f"{folder} is not yours alone, so nothing is put there. Remove it, or set XDG_RUNTIME_DIR to another."
        )
    return folder


class Lock:
    """Held by the resident process for as long as it lives; the system lets go of it even after a kill -9."""

    def __init__(self) -> None:
        import fcntl

        file = made_folder() / LOCK
        self._handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise Conflict(f"The resident process runs already, as process {holder() or '?'}.") from None
        os.ftruncate(self._handle, 0)
        os.write(self._handle, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        os.ftruncate(self._handle, 0)
        os.close(self._handle)


def holder() -> int | None:
    """The process that holds the lock; None if none does. A number left by a killed process does not count."""
    if not SUPPORTED:
        return None
    import fcntl

    try:
        handle = os.open(socket_file().parent / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        number = os.read(handle, 20).strip()
        return int(number) if number.isdigit() else None
    finally:
        os.close(handle)
    return None
