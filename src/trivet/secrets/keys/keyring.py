"""Keys in the keyring of the operating system, where `keyring` is installed and finds one."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from trivet.errors import SecretError
from trivet.secrets.keys.document import EMPTY, Keys, decode, encode
from trivet.secrets.keys.file import locked

SERVICE = "trivet"
ENTRY = "secret-keys"


class KeyringPlace:
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
            raise SecretError(f"{self.name} does not answer ({error}). Unlock it, then try again.") from None
        return EMPTY if text is None else decode(text, self.name)

    def write(self, before: Keys, after: Keys) -> bool:
        """A keyring has no compare-and-set, so a lock keeps other processes of this machine from writing between."""
        try:
            with locked(self._lock):
                if self.read() != before:
                    return False
                self._keyring.set_password(SERVICE, ENTRY, encode(after).decode())
                return self.read() == after
        except self._keyring.errors.KeyringError as error:
            raise SecretError(f"{self.name} cannot be written ({error}). Unlock it, then try again.") from None
        except OSError as error:
            raise SecretError(f"{self._lock}.lock cannot be made ({error.strerror}), so no key is changed.") from None


def usable_keyring(lock: Path) -> KeyringPlace | None:
    """None where the package is missing, or finds no keyring, as on most servers."""
    try:
        import keyring
        import keyring.errors
        from keyring.backends.fail import Keyring as NoKeyring
    except ImportError:
        return None
    backend = keyring.get_keyring()
    if isinstance(backend, NoKeyring) or backend.priority <= 0:
        return None
    return KeyringPlace(keyring, lock)
