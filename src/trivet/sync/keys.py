"""The keys by which this user's stores come to their servers: in a private file beside the settings, not in the store.

A backup or a copy of the store then opens no server.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from trivet.atomic_write import atomic_write
from trivet.errors import Unauthorised
from trivet.private_folder import private_folder
from trivet.settings import Settings, config_path

_FILE = "sync-keys.json"
_STORES = "sync-stores.json"

T = TypeVar("T")


def key_for(settings: Settings, url: str, user: str) -> str:
    """The one in the settings or the environment, if there is one; else the one that joined."""
    key = settings.key or _kept().get(f"{user}@{url}", "")
    if not key:
        raise Unauthorised(
            f"The key of {user} at {url} is not on this machine. Give it once: TRIVET_KEY=KEY trivet sync now."
        )
    return key


def keep_key(url: str, user: str, key: str) -> None:
    if _kept().get(f"{user}@{url}") != key:
        _write(_FILE, {**_kept(), f"{user}@{url}": key})


def note_use(url: str, user: str, store: str) -> None:
    """That a store comes by this key, so that another one that leaves the server does not take it along."""
    users, path = _users(), str(Path(store).resolve())
    if path not in users.get(f"{user}@{url}", ()):
        _write(_STORES, {**users, f"{user}@{url}": [*users.get(f"{user}@{url}", ()), path]})


def drop_key(url: str, user: str, store: str) -> None:
    """The store needs it no longer. It stays while another one that is still there does."""
    name, users, path = f"{user}@{url}", _users(), str(Path(store).resolve())
    left = [one for one in users.pop(name, ()) if one != path and Path(one).exists()]
    _write(_STORES, {**users, name: left} if left else users)
    if not left:
        _write(_FILE, {known: key for known, key in _kept().items() if known != name})


def _kept() -> dict[str, str]:
    return _read(_FILE, dict[str, str])


def _users() -> dict[str, list[str]]:
    return _read(_STORES, dict[str, list[str]])


def _read(name: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode((config_path().parent / name).read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError):
        return kind()


def _write(name: str, value: object) -> None:
    private_folder(config_path().parent)
    with atomic_write(config_path().parent / name) as stream:
        stream.write(msgspec.json.encode(value))
