"""The keys of all places: the first place that can hold keys makes new ones, every place is asked for old ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import msgspec

from trivet.errors import SecretError
from trivet.secrets.keys.document import Keys, Place


class Key(msgspec.Struct, frozen=True):
    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.id})"


class KeyRing:
    """Asked for a key only when there is something to seal or to open; the places are found then."""

    def __init__(self, find_places: Callable[[], Sequence[Place]]) -> None:
        self._find_places = find_places
        self._found: Sequence[Place] | None = None
        self._opened: dict[str, Key] = {}
        self._lock = threading.Lock()

    def current(self) -> Key:
        """The key that seals, made on first need. Read anew each time: another process may have rotated it."""
        with self._lock:
            return self._opened_current(self._change(lambda keys: keys if keys.current else keys.with_new()))

    def get(self, id: str) -> Key:
        """The key with this id, wherever it is."""
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


# How often another process may be faster before we give up.
TRIES = 5
