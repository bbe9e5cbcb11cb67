"""The keys of all places. The first place makes new keys; every place is asked for old ones."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from trivet.errors import SecretError
from trivet.secrets.keys.document import Keys, Place
from trivet.secrets.keys.file import FilePlace
from trivet.secrets.keys.keyring import usable_keyring

KEY_FILE = "secret-keys.json"
# How often another process may change the keys first before we give up.
TRIES = 5


class Key(msgspec.Struct, frozen=True):
    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.id})"


class KeyRing:
    """Looks for its places when a key is first needed, which is when there is something to seal or to open."""

    def __init__(self, find_places: Callable[[], Sequence[Place]]) -> None:
        self._find_places = find_places
        self._found: Sequence[Place] | None = None
        self._opened: dict[str, Key] = {}
        self._lock = threading.Lock()

    def current(self) -> Key:
        """The key that seals, made if there is none. Read again each time: another process may have rotated it."""
        with self._lock:
            return self._opened_current(self._change(lambda keys: keys if keys.current else keys.with_new()))

    def get(self, id: str) -> Key:
        """The key with this id, from the first place that has it."""
        with self._lock:
            for place in () if id in self._opened else self._places():
                secret = place.read().secret(id)
                if secret is not None:
                    self._opened[id] = Key(id, secret)
                    break
            if id not in self._opened:
                looked = " or ".join(place.name for place in self._places())
                raise SecretError(
                    f"The key {id} that sealed this is not in {looked}. Bring it back to read the secret."
                )
            return self._opened[id]

    def add(self) -> Key:
        """A new key becomes the current one; the old ones stay, to open what they sealed."""
        with self._lock:
            return self._opened_current(self._change(Keys.with_new))

    def drop_old(self) -> int:
        """Removes every key but the current one from the first place: how many."""
        with self._lock:
            before = self._first().read()
            after = self._change(lambda keys: keys.without(set(keys.keys)))
            self._opened.clear()
            return len(before.keys) - len(after.keys)

    def _opened_current(self, keys: Keys) -> Key:
        secret = keys.secret(keys.current)
        assert secret is not None, "a document without its current key is refused when it is read"
        return self._opened.setdefault(keys.current, Key(keys.current, secret))

    def _change(self, change: Callable[[Keys], Keys]) -> Keys:
        for _ in range(TRIES):
            before = self._first().read()
            after = change(before)
            if after == before or self._first().write(before, after):
                return after
        raise SecretError(f"{self._first().name} was changed again and again meanwhile. Try again.")

    def _first(self) -> Place:
        return self._places()[0]

    def _places(self) -> Sequence[Place]:
        if self._found is None:
            self._found = self._find_places()
        return self._found


def places_of(vault: str, keyring: bool, folder: Path) -> Sequence[Place]:
    """A vault if one is configured, else the keyring if there is one, and a file: the first is preferred.

    A configured vault that fails is an error, never a reason to use another place.
    """
    places: list[Place] = []
    if vault:
        from trivet.secrets.keys.vault import VaultPlace  # 30 ms, only where a vault is configured

        token = os.environ.get("VAULT_TOKEN", "")
        if not token:
            raise SecretError(
                "secrets_vault is set, but VAULT_TOKEN is not. Set it to a token that may read and write there."
            )
        places.append(VaultPlace(vault, token))
    if keyring and (found := usable_keyring()) is not None:
        places.append(found)
    places.append(FilePlace(folder / KEY_FILE))
    return places
