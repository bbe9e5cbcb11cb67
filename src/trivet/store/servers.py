"""Database servers that keep the stores of many tenants. Each kind is a folder beside this file, loaded when needed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trivet.errors import InvalidInput
from trivet.settings import Settings
from trivet.settings.address import DatabaseKind

if TYPE_CHECKING:
    from trivet.store import Store


class DatabaseServer(Protocol):
    """The database of all tenants, opened once a process."""

    @property
    def name(self) -> str:
        """Where it is, without the password."""

    @property
    def schema(self) -> int:
        """The version of its tables."""

    def store(self, tenant: str, closes_server: bool = False) -> Store:
        """The store of one tenant, which with `closes_server` closes the server with itself."""

    def has_tenant(self, name: str) -> bool: ...
    def import_file(self, file: Path, tenant: str) -> None:
        """Copies a file of the embedded store, of the present schema, into a tenant that must be empty."""

    def close(self) -> None: ...


def open_server(settings: Settings, kind: DatabaseKind) -> DatabaseServer:
    try:
        package = import_module(f"trivet.store.{kind.package}")
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"A store on {kind.name} needs the package {error.name}. Run `pip install 'trivet[{kind.package}]'`."
        ) from None
    server: DatabaseServer = package.open_server(settings)
    return server
