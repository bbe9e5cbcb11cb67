"""Tenants: their names, and where the store of each is."""

from __future__ import annotations

import re
from pathlib import Path

from trivet.errors import InvalidInput
from trivet.settings import Settings
from trivet.settings.address import is_server

# It becomes a part of file names and of keys.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")


def is_tenant(name: str) -> bool:
    return _NAME.match(name) is not None


def check_tenant(name: str) -> str:
    if not is_tenant(name):
        raise InvalidInput(
            f"tenant: {name!r} cannot be one. A name has up to 63 lower-case letters, digits, hyphens and underscores, "
            "and starts with a letter or a digit. Nothing was opened."
        )
    return name


def tenant_file(settings: Settings) -> Path:
    """The first tenant has the file that the settings name; each other one has a file of its own beside it."""
    if is_server(settings.path):
        raise InvalidInput(f"{settings.path} is a server, and this needs the store itself. Do it where the store is.")
    first = Path(settings.path).expanduser()
    if check_tenant(settings.tenant) == "default":
        return first
    return first.with_name(f"{first.stem}.tenants") / f"{settings.tenant}{first.suffix or '.db'}"
