"""Which places there are: a vault if one is configured, else the keyring if there is one, and a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from trivet.errors import SecretError
from trivet.secrets.keys.document import Place
from trivet.secrets.keys.file import FilePlace
from trivet.secrets.keys.keyring import usable_keyring

FILE = "secret-keys.json"


def places_of(vault: str, keyring: bool, folder: Path) -> Sequence[Place]:
    """In the order of preference. A configured vault that fails is an error, never a reason to use another place."""
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
    places.append(FilePlace(folder / FILE))
    return places
