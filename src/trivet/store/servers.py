"""Database servers that keep the stores of many tenants. Each kind is a folder beside this file, loaded when needed."""

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
    """How a tenant stands in a database. `cell` and `address` are those of the other one that its move concerns."""

    standing: Literal["home", "frozen", "moved", "arriving"]
    move: str = ""
    cell: str = ""
    address: str = ""


class _Move(msgspec.Struct, frozen=True):
    """As much of a move as everybody must know."""

    id: str
    cell: str
    address: str


def decode_tenant_state(
    standing: Literal["home", "frozen", "moved", "arriving"], move: str | None
) -> TenantState:
    if not move:
        return TenantState(standing)
    told = msgspec.json.decode(move, type=_Move)
    return TenantState(standing, told.id, told.cell, told.address)


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
    @property
    def cell(self) -> str:
        """What this database is known by among those between which tenants move."""

    @property
    def address(self) -> str:
        """Where it is, without the password, with the port."""

    def standing(self, tenant: str) -> TenantState | None:
        """Whether it is at home here; None where there is no such tenant."""

    def listed(self, tenant: str) -> tuple[str, str] | None:
        """The cell and its address that the directory has for a tenant."""

    def activate(self, tenant: str, move: str) -> None:
        """Opens the tenant's new home after its old one has said that this move is done."""

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
