"""The keys by which this user's stores come to their servers: in a private file beside the settings, not in the store.

A backup or a copy of the store then opens no server.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from trivet.atomic_write import atomic_write
from trivet.errors import Unauthorised
from trivet.private_folder import private_folder
from trivet.settings import Settings, config_path

_FILE = "sync-keys.json"


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
        _write({**_kept(), f"{user}@{url}": key})


def drop_key(url: str, user: str) -> None:
    _write({name: key for name, key in _kept().items() if name != f"{user}@{url}"})


def _place() -> Path:
    return config_path().parent / _FILE


def _kept() -> dict[str, str]:
    try:
        return msgspec.json.decode(_place().read_bytes(), type=dict[str, str])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}


def _write(keys: dict[str, str]) -> None:
    private_folder(_place().parent)
    with atomic_write(_place()) as stream:
        stream.write(msgspec.json.encode(keys))
