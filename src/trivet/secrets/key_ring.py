"""The keys of all places. The first place makes new keys; every place is asked for old ones."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from trivet.errors import SecretError
from trivet.secrets.key_storage import FileKeyStore, Keys, KeyStore, find_keyring

logger = logging.getLogger("trivet.secrets.keys")

KEY_FILE = "secret-keys.json"
# How often another process may change the keys first before we give up: every store notes itself once, and a server may
# open many at the same moment.
MAX_TRIES = 30
# The longest pause before another try; its length is random, so that they do not come in step.
PAUSE_SECONDS = 0.02


class Key(msgspec.Struct, frozen=True):
    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.id})"


class ReleasedKeys(msgspec.Struct, frozen=True):
    """How many keys a rotation dropped, and which it kept because of which stores."""

    dropped: int
    kept: Mapping[str, tuple[str, ...]]


class KeyRing:
    """Looks for its places when a key is first needed, which is when there is something to seal or to open.

    `user` names the store that it works for; it is noted beside each key that the store uses.
    """

    def __init__(
        self, find_places: Callable[[], Sequence[KeyStore]], user: Callable[[], str] = str
    ) -> None:
        self._find_places = find_places
        self._find_user = user
        self._found: Sequence[KeyStore] | None = None
        self._opened: dict[str, Key] = {}
        self._recorded_uses: set[str] = set()
        self._lock = threading.Lock()

    def current(self) -> Key:
        """The key that seals, made if there is none. Read again each time: another process may have rotated it."""
        user = self._find_user()
        with self._lock:
            return self._opened_current(self._change(lambda keys: _with_current(keys, user)))

    def get(self, id: str, note: bool = True) -> Key:
        """The key with this id, from the first place that has it. With `note` the store is noted as its user."""
        user = self._find_user() if note and id not in self._recorded_uses else ""
        with self._lock:
            if user or id not in self._opened:
                self._look_up(id, user)
            if id not in self._opened:
                looked = " or ".join(place.name for place in self._places())
                raise SecretError(
                    f"The key {id} that sealed this is not in {looked}. Bring it back to read the secret."
                )
            return self._opened[id]

    def _look_up(self, id: str, user: str) -> None:
        for place in self._places():
            secret = place.read().secret(id)
            if secret is not None:
                self._opened[id] = Key(id, secret)
                if user:
                    self._record_use(place, id, user)
                return

    def add(self) -> Key:
        """A new key becomes the current one; the old ones stay, to open what they sealed."""
        user = self._find_user()
        with self._lock:
            return self._opened_current(
                self._change(lambda keys: _with_current(keys.with_new(), user))
            )

    def before(self, id: str) -> tuple[str, ...]:
        """The keys of the first place that are older than this one."""
        with self._lock:
            return self._first().read().before(id)

    def release(
        self, ids: Collection[str], drop: bool, even_if_used: Collection[str] = ()
    ) -> ReleasedKeys:
        """This store holds nothing any longer that these keys sealed. With `drop` those without other users go.

        One compare-and-set: a store that begins to use one of them at the same time is noted before, and keeps it, or
        comes after and does not find it.
        """
        user = self._find_user()

        def change(keys: Keys) -> Keys:
            left = keys.release(ids, user)
            unused = {id for id in ids if not left.users_of(id)} if drop else set()
            return left.without(unused | set(even_if_used))

        with self._lock:
            before = self._first().read()
            after = self._change(change)
            self._recorded_uses -= set(ids)
        kept = {id: after.users_of(id) for id in ids if id in after.keys} if drop else {}
        return ReleasedKeys(len(before.keys) - len(after.keys), kept)

    def _record_use(self, place: KeyStore, id: str, user: str) -> None:
        """To open a secret does not depend on it: where the place cannot be written, nobody drops keys there either."""
        self._recorded_uses.add(id)
        if place is not self._first():
            return
        try:
            self._change(lambda keys: keys.used(id, user))
        except SecretError as error:
            logger.warning("It cannot be noted that the key %s is in use: %s", id, error)

    def _opened_current(self, keys: Keys) -> Key:
        secret = keys.secret(keys.current)
        assert secret is not None, "a document without its current key is refused when it is read"
        return self._opened.setdefault(keys.current, Key(keys.current, secret))

    def _change(self, change: Callable[[Keys], Keys]) -> Keys:
        for _ in range(MAX_TRIES):
            before = self._first().read()
            after = change(before)
            if after == before or self._first().write(before, after):
                return after
            time.sleep(random.uniform(0, PAUSE_SECONDS))
        raise SecretError(f"{self._first().name} was changed again and again meanwhile. Try again.")

    def _first(self) -> KeyStore:
        return self._places()[0]

    def _places(self) -> Sequence[KeyStore]:
        if self._found is None:
            self._found = self._find_places()
        return self._found


def _with_current(keys: Keys, user: str) -> Keys:
    made = keys if keys.current else keys.with_new()
    return made.used(made.current, user)


def key_stores(vault: str, keyring: bool, folder: Path) -> Sequence[KeyStore]:
    """A vault if one is configured, else the keyring if there is one, and a file: the first is preferred.

    A configured vault that fails is an error, never a reason to use another place.
    """
    places: list[KeyStore] = []
    if vault:
        from trivet.secrets.key_vault import (
            VaultKeyStore,
        )  # 30 ms, only where a vault is configured

        token = os.environ.get("VAULT_TOKEN", "")
        if not token:
            raise SecretError(
                "secrets_vault is set, but VAULT_TOKEN is not. Set it to a token that may read and write there."
            )
        places.append(VaultKeyStore(vault, token))
    if keyring and (found := find_keyring(folder / KEY_FILE)) is not None:
        places.append(found)
    places.append(FileKeyStore(folder / KEY_FILE))
    return places
