"""Encryption keys from several stores: the first one gets new keys, all are searched."""

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
# Maximum attempts to write while other processes change the keys: a server may open many stores at
# once.
MAX_TRIES = 30
# Longest random pause between attempts.
PAUSE_SECONDS = 0.02


class Key(msgspec.Struct, frozen=True):
    """An encryption key whose `repr` hides the secret."""

    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.id})"


class ReleasedKeys(msgspec.Struct, frozen=True):
    """The number of dropped keys, and the stores that use the kept ones."""

    dropped: int
    kept: Mapping[str, tuple[str, ...]]


class KeyRing:
    """The keys of a process; key stores are located on first use.

    `user` returns the memory store's name, recorded with each key it uses.
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
        """Return the key for sealing, made if there is none.

        Read it on each call: another process may have rotated it.
        """
        user = self._find_user()
        with self._lock:
            return self._opened_current(self._change(lambda keys: _with_current(keys, user)))

    def get(self, id: str, note: bool = True) -> Key:
        """Return the key from the first store that has it; with `note`, record its use."""
        user = self._find_user() if note and id not in self._recorded_uses else ""
        with self._lock:
            if user or id not in self._opened:
                self._look_up(id, user)
            if id not in self._opened:
                looked = " or ".join(place.name for place in self._places())
                raise SecretError(
                    f"The key {id} that sealed this is not in {looked}. Restore it to read the "
                    "secret."
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
        user = self._find_user()
        with self._lock:
            return self._opened_current(
                self._change(lambda keys: _with_current(keys.with_new(), user))
            )

    def before(self, id: str) -> tuple[str, ...]:
        with self._lock:
            return self._first().read().before(id)

    def release(
        self, ids: Collection[str], drop: bool, even_if_used: Collection[str] = ()
    ) -> ReleasedKeys:
        """Record that this store no longer uses these keys; with `drop`, delete unused ones.

        One compare-and-set: a store that starts to use a key keeps it, or does not find it.
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
        """Ignore a failure, which must not prevent decryption."""
        self._recorded_uses.add(id)
        if place is not self._first():
            return
        try:
            self._change(lambda keys: keys.used(id, user))
        except SecretError as error:
            logger.warning("The use of the key %s could not be recorded: %s", id, error)

    def _opened_current(self, keys: Keys) -> Key:
        secret = keys.secret(keys.current)
        assert secret is not None, "a document without its current key is rejected on reading"
        return self._opened.setdefault(keys.current, Key(keys.current, secret))

    def _change(self, change: Callable[[Keys], Keys]) -> Keys:
        for _ in range(MAX_TRIES):
            before = self._first().read()
            after = change(before)
            if after == before or self._first().write(before, after):
                return after
            time.sleep(random.uniform(0, PAUSE_SECONDS))
        raise SecretError(
            f"Other processes kept changing {self._first().name}. Nothing was written; try again."
        )

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
    """Return the key stores: a configured vault, else the keyring, then a file.

    A configured vault that fails is an error, never a reason to use another key store.
    """
    places: list[KeyStore] = []
    if vault:
        from trivet.secrets.key_vault import (
            VaultKeyStore,
        )  # 30 ms, needed only if a vault is configured

        token = os.environ.get("VAULT_TOKEN", "")
        if not token:
            raise SecretError(
                "secrets_vault is set, but VAULT_TOKEN is not. Set it to a token that may read and "
                "write there."
            )
        places.append(VaultKeyStore(vault, token))
    if keyring and (found := find_keyring(folder / KEY_FILE)) is not None:
        places.append(found)
    places.append(FileKeyStore(folder / KEY_FILE))
    return places
