"""Keys in a file beside the configuration that only its owner may read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trivet.atomic_write import OWNER_ONLY, atomic_write
from trivet.errors import SecretError
from trivet.private_folder import private_folder
from trivet.secrets.keys.document import EMPTY, Keys, decode, encode

if sys.platform != "win32":
    import fcntl


class FilePlace:
    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return f"the file {self._path}"

    def read(self) -> Keys:
        try:
            with self._path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                if os.name == "posix" and mode & 0o077:
                    raise SecretError(
                        f"{self._path} can be read by others. Run `chmod 600 {self._path}`, then try again."
                    )
                return decode(file.read(), self.name)
        except FileNotFoundError:
            return EMPTY
        except OSError as error:
            raise SecretError(f"{self.name} cannot be read: {error.strerror}.") from None

    def write(self, before: Keys, after: Keys) -> bool:
        """Atomic, and on the disk before it returns: a lost key would make what it sealed unreadable."""
        try:
            with locked(self._path):
                if self.read() != before:
                    return False
                self._replace(encode(after))
        except OSError as error:
            raise SecretError(f"{self.name} cannot be written: {error.strerror}.") from None
        return True

    def _replace(self, data: bytes) -> None:
        with atomic_write(self._path) as stream:
            stream.write(data)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process of this machine at a time between reading and writing the keys; the lock file is beside `path`."""
    private_folder(path.parent)
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    try:
        if sys.platform != "win32":
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
