"""Encryption keys as one small JSON document, in an owner-only file or the system's keyring."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Protocol

import msgspec

from trivet.common.clock import now
from trivet.common.files import OWNER_ONLY_FILE, atomic_write, private_folder
from trivet.common.threads import prepared_type
from trivet.errors import SecretError

KEY_BYTES = 32
# Listed as a user of keys made by versions that recorded no users.
UNRECORDED_USERS = "stores that used it before users of keys were noted"
# Maximum users listed by name, because every secret needs the document.
MAX_LISTED_USERS = 200
MORE = "more stores than are listed"


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Keys by id, oldest first, in base64; `current` seals, the others only decrypt.

    A store is recorded in `users` before it uses a key, so a key without users can be dropped.
    """

    current: str
    keys: Mapping[str, str]
    users: Mapping[str, tuple[str, ...]] = {}

    def secret(self, id: str) -> bytes | None:
        text = self.keys.get(id)
        return None if text is None else base64.b64decode(text)

    def users_of(self, id: str) -> tuple[str, ...]:
        return self.users.get(id, (UNRECORDED_USERS,))

    def before(self, id: str) -> tuple[str, ...]:
        ids = tuple(self.keys)
        return ids[: ids.index(id)] if id in ids else ()

    def with_new(self) -> Keys:
        id = f"{now()[:10]}-{secrets.token_hex(4)}"
        key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
        return Keys(id, {**self.keys, id: key}, {**self.users, id: ()})

    def used(self, id: str, user: str) -> Keys:
        users = self.users_of(id)
        if not user or id not in self.keys or user in users or MORE in users:
            return self
        if len(users) >= MAX_LISTED_USERS:
            user = MORE
        return Keys(self.current, self.keys, {**self.users, id: (*users, user)})

    def release(self, ids: Collection[str], user: str) -> Keys:
        left = {
            id: tuple(one for one in self.users_of(id) if one != user)
            for id in ids
            if id in self.keys
        }
        return Keys(self.current, self.keys, {**self.users, **left})

    def without(self, ids: Collection[str]) -> Keys:
        gone = set(ids) - {self.current}
        keys = {id: key for id, key in self.keys.items() if id not in gone}
        return Keys(
            self.current, keys, {id: users for id, users in self.users.items() if id in keys}
        )


EMPTY = Keys("", {})


class KeyStore(Protocol):
    """A place for the document; `write` returns False if it no longer equals `before`."""

    @property
    def name(self) -> str: ...
    def read(self) -> Keys: ...
    def write(self, before: Keys, after: Keys) -> bool: ...


def encode(keys: Keys) -> bytes:
    return msgspec.json.encode(keys)


def decode(data: bytes | str, place: str) -> Keys:
    try:
        keys = msgspec.json.decode(data, type=prepared_type(Keys))
        sizes = {len(base64.b64decode(key, validate=True)) for key in keys.keys.values()}
    except (msgspec.DecodeError, msgspec.ValidationError, binascii.Error, ValueError):
        raise SecretError(
            f"{place} does not hold Trivet's keys, or they are damaged. Restore a backup of it."
        ) from None
    if sizes - {KEY_BYTES} or keys.current not in keys.keys:
        raise SecretError(
            f"{place} holds keys of the wrong size or no current one. Restore a backup of it."
        )
    return keys


if sys.platform != "win32":
    import fcntl


class FileKeyStore:
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
                        f"{self._path} is readable by others. Run `chmod 600 {self._path}`, then "
                        "try again."
                    )
                return decode(file.read(), self.name)
        except FileNotFoundError:
            return EMPTY
        except OSError as error:
            raise SecretError(f"{self.name} cannot be read: {error.strerror}.") from None

    def write(self, before: Keys, after: Keys) -> bool:
        """Write atomically and sync: a lost key makes its secrets unreadable."""
        try:
            with file_lock(self._path):
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
def file_lock(path: Path) -> Iterator[None]:
    """Exclude other processes of this machine."""
    private_folder(path.parent)
    descriptor = os.open(
        path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, OWNER_ONLY_FILE
    )
    try:
        if sys.platform != "win32":
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


SERVICE = "trivet"
ENTRY = "secret-keys"


class KeyringKeyStore:
    def __init__(self, keyring: ModuleType, lock: Path) -> None:
        self._keyring = keyring
        self._lock = lock

    @property
    def name(self) -> str:
        return "the keyring of the operating system"

    def read(self) -> Keys:
        try:
            text = self._keyring.get_password(SERVICE, ENTRY)
        except self._keyring.errors.KeyringError as error:
            raise SecretError(
                f"{self.name} does not answer ({error}). Unlock it, then try again."
            ) from None
        return EMPTY if text is None else decode(text, self.name)

    def write(self, before: Keys, after: Keys) -> bool:
        """Hold a lock, because a keyring has no compare-and-set."""
        try:
            with file_lock(self._lock):
                if self.read() != before:
                    return False
                self._keyring.set_password(SERVICE, ENTRY, encode(after).decode())
                return self.read() == after
        except self._keyring.errors.KeyringError as error:
            raise SecretError(
                f"{self.name} cannot be written ({error}). Unlock it, then try again."
            ) from None
        except OSError as error:
            raise SecretError(
                f"{self._lock}.lock cannot be created ({error.strerror}), so no key was changed."
            ) from None


def find_keyring(lock: Path) -> KeyringKeyStore | None:
    try:
        import keyring
        import keyring.errors
        from keyring.backends.fail import Keyring as NoKeyring
    except ImportError:
        return None
    backend = keyring.get_keyring()
    if isinstance(backend, NoKeyring) or backend.priority <= 0:
        return None
    return KeyringKeyStore(keyring, lock)
