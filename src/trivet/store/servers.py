"""Database servers of many tenants; each kind is a package, imported on first use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from trivet.errors import InvalidInput
from trivet.settings import Settings
from trivet.settings.locations import DatabaseKind

if TYPE_CHECKING:
    from trivet.store import Store


class TenantState(msgspec.Struct, frozen=True):
    """A tenant's state; `cell` and `address` are the other side of its move."""

    standing: Literal["home", "frozen", "moved", "arriving"]
    move: str = ""
    cell: str = ""
    address: str = ""


class _Move(msgspec.Struct, frozen=True):
    id: str
    cell: str
    address: str


def decode_tenant_state(
    standing: Literal["home", "frozen", "moved", "arriving"], move: str | None
) -> TenantState:
    if not move:
        return TenantState(standing)
    decoded = msgspec.json.decode(move, type=_Move)
    return TenantState(standing, decoded.id, decoded.cell, decoded.address)


class DatabaseServer(Protocol):
    @property
    def name(self) -> str:
        """The location without the password."""

    @property
    def schema(self) -> int: ...

    def store(self, tenant: str, closes_server: bool = False) -> Store: ...

    def has_tenant(self, name: str) -> bool: ...
    @property
    def cell(self) -> str:
        """The name of this database among those that tenants move between."""

    @property
    def address(self) -> str:
        """The location with the port, without the password."""

    def standing(self, tenant: str) -> TenantState | None: ...

    def listed(self, tenant: str) -> tuple[str, str] | None: ...

    def activate(self, tenant: str, move: str) -> None:
        """Open the tenant's new home after the old one has committed this move."""

    def import_file(self, file: Path, tenant: str) -> None:
        """Copy an embedded store of the current schema into an empty tenant."""

    def close(self) -> None: ...


def open_server(settings: Settings, kind: DatabaseKind) -> DatabaseServer:
    try:
        package = import_module(f"trivet.store.{kind.package}")
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"A store on {kind.name} needs the package {error.name}. "
            f"Run `pip install 'trivet[{kind.package}]'`."
        ) from None
    server: DatabaseServer = package.open_server(settings)
    return server
