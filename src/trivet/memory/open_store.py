"""Opening the store that the settings name, a file or a tenant on a database server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.errors import InvalidInput
from trivet.settings import Settings
from trivet.settings.locations import database_of, is_server, is_unrecognized_address
from trivet.store.servers import DatabaseServer, open_server
from trivet.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from trivet.store import Store


# SQLite's name for a database without a file.
IN_MEMORY = ":memory:"


def open_store(settings: Settings, server: DatabaseServer | None = None) -> Store:
    """Open the store; without a shared `server` it closes its own connections."""
    if is_unrecognized_address(settings.path):
        raise InvalidInput(
            "The path of the store looks like an address but is neither "
            "postgresql://USER@HOST/DATABASE nor "
            "https://HOST. For a file of that name, write ./ before it."
        )
    if settings.path == IN_MEMORY:
        raise InvalidInput(
            f"A store is a file that processes share, so {IN_MEMORY} cannot be one. For a "
            "temporary store, "
            "name a file in a temporary folder; for a file of that name, write ./ before it."
        )
    kind = database_of(settings.path)
    if kind is None:
        return SqliteStore(tenant_file(settings), settings.busy_time_limit_ms)
    check_tenant(settings.tenant)
    opened = server or open_server(settings, kind)
    return opened.store(settings.tenant, closes_server=server is None)


# A tenant's name, which is part of file names and API keys.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")


def is_tenant(name: str) -> bool:
    return _NAME.match(name) is not None


def check_tenant(name: str) -> str:
    if not is_tenant(name):
        raise InvalidInput(
            f"tenant: {name!r} is not a valid name. Use up to 63 lower-case letters, digits, "
            "hyphens and "
            "underscores, starting with a letter or a digit. Nothing was opened."
        )
    return name


def tenant_file(settings: Settings) -> Path:
    """Return the configured file for `default`, else one in a sibling folder."""
    if is_server(settings.path):
        raise InvalidInput(
            f"{settings.path} is a server, and this command needs the store itself. Run it "
            "where the store is."
        )
    first = Path(settings.path).expanduser()
    if check_tenant(settings.tenant) == "default":
        return first
    return first.with_name(f"{first.stem}.tenants") / f"{settings.tenant}{first.suffix or '.db'}"
