"""`trivet tenant`: moves tenants between databases, and shows where they are."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from trivet.cli.command import command
from trivet.cli.output import Line, line
from trivet.cli.session import Session
from trivet.cli.stderr import warn
from trivet.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from trivet.settings import Settings
    from trivet.store.postgres.server import Server

TenantArgument = Annotated[str, typer.Argument(metavar="TENANT", help="The name of the tenant.", show_default=False)]
ToOption = Annotated[
    str, typer.Option("--to", metavar="DATABASE", help="The new home: postgresql://USER@HOST/DATABASE.")
]
# Between two lines about how far a stage is.
PROGRESS_INTERVAL_SECONDS = 1.0


@command(
    "tenant move",
    "Move a tenant to another PostgreSQL database while it is used.",
    more="Everything of the tenant is copied, then what changed meanwhile; for the last of it writers are told to come "
    "back in some seconds; then the new database is its home. Servers whose setting `cells` names that database follow "
    "by themselves, keys stay good, and laptops that sync go on. Stopped or killed anywhere, the same command goes on "
    "where it was. Before the switch --abandon gives the move up. The old copy stays, closed, until `trivet tenant "
    "forget-moved`. --path names the database where the tenant is now.",
    example="trivet tenant move acme --path postgresql://trivet@db1/trivet --to postgresql://trivet@db2/trivet",
)
def move_tenant(
    session: Session,
    tenant: TenantArgument,
    to: ToOption,
    abandon: Annotated[bool, typer.Option("--abandon", help="Give the move up; the tenant stays.")] = False,
) -> None:
    from trivet.store.postgres import tenant_move as moving

    with _servers(session, tenant) as (settings, old, stack):
        if abandon:
            new = _reached(settings, to, stack)
            moving.abandon(old, new, tenant, _Progress())
            said = f"The move of {tenant} is given up; it lives at {old.address}."
            session.show({"tenant": tenant, "home": old.address}, lambda: [line(said)])
            return
        home = moving.move(old, _opened(settings, to, stack), tenant, _Progress())
        told = [
            line(f"{tenant} lives at {home}."),
            line(f"The old copy is closed and stays until `trivet tenant forget-moved {tenant}`."),
        ]
        session.show({"tenant": tenant, "home": home, "left": old.address}, lambda: told)


@command(
    "tenant show",
    "Show whether a tenant is at home in this database, and how far its move is.",
    example="trivet tenant show acme --path postgresql://trivet@db1/trivet",
)
def show_tenant(session: Session, tenant: TenantArgument) -> None:
    with _servers(session, tenant) as (_, server, _stack):
        standing, listed = server.standing(tenant), server.listed(tenant)
        value = {
            "tenant": tenant,
            "database": server.address,
            "standing": standing.standing if standing else "unknown",
            "other": standing.address if standing else "",
            "directory": listed[1] if listed else "",
        }
        session.show(value, lambda: _told(value))


@command(
    "tenant forget-moved",
    "Remove the copy that a moved tenant left in its old database.",
    more="Only after a move is done, and only if its new home has it. The tenant's row stays and says where it went. "
    "The new home is one that the setting `cells` names, or given with --to.",
    example="trivet tenant forget-moved acme --path postgresql://trivet@db1/trivet --to postgresql://trivet@db2/trivet",
)
def forget_moved(session: Session, tenant: TenantArgument, to: ToOption = "") -> None:
    from trivet.store.postgres import tenant_move

    with _servers(session, tenant) as (settings, old, stack):
        pending = tenant_move.forget_moved(old, _open_target(settings, old, tenant, to, stack), tenant)
        if pending:
            warn(pending)
        said = f"The old copy of {tenant} in {old.address} is removed."
        session.show({"tenant": tenant, "removed_from": old.address, "pending": pending}, lambda: [line(said)])


@contextmanager
def _servers(session: Session, tenant: str) -> Iterator[tuple[Settings, Server, ExitStack]]:
    """The settings, the database that --path names, and what closes it and any other that is opened."""
    from trivet.memory.open_store import check_tenant
    from trivet.settings import load_settings

    check_tenant(tenant)
    settings = load_settings(path=session.path)
    with ExitStack() as stack:
        yield settings, _opened(settings, settings.path, stack), stack


def _opened(settings: Settings, address: str, stack: ExitStack) -> Server:
    import msgspec

    from trivet.settings.locations import database_of

    if database_of(address) is None:
        raise InvalidInput("Tenants move between PostgreSQL databases: name both as postgresql://USER@HOST/DATABASE.")
    from trivet.store.postgres.store import open_server

    server = open_server(msgspec.structs.replace(settings, path=address, replica_urls=()))
    stack.callback(server.close)
    return server


def _reached(settings: Settings, address: str, stack: ExitStack) -> Server | None:
    """None where it is away: a move can be given up without it."""
    try:
        return _opened(settings, address, stack)
    except StoreError as error:
        warn(f"What was copied there stays, closed, until this is done again or the tenant is moved there: {error}")
        return None


def _open_target(settings: Settings, old: Server, tenant: str, to: str, stack: ExitStack) -> Server:
    standing = old.standing(tenant)
    for address in (to,) if to else settings.cells:
        server = _opened(settings, address, stack)
        if to or (standing is not None and server.cell == standing.cell):
            return server
    raise InvalidInput("Say where the tenant lives now, with --to. Nothing was removed.")


def _told(value: dict[str, str]) -> list[Line]:
    here, other = f"{value['tenant']} in {value['database']}", value["other"]
    said = {
        "unknown": f"There is no {here}.",
        "home": f"{here}: at home" + (f"; it is being moved to {other}, not frozen yet." if other else "."),
        "frozen": f"{here}: frozen for its move to {other}; it is read, and writers come back.",
        "moved": f"{here}: moved to {other}; what is here is an old copy or gone.",
        "arriving": f"{here}: being moved here from {other}, where it still lives until the switch.",
    }[value["standing"]]
    listed = [line(f"The directory has it at {value['directory']}.")] if value["directory"] else []
    return [line(said), *listed]


class _Progress:
    """A line on standard error for each stage, and now and then one about how far it is."""

    def __init__(self) -> None:
        self._stage = ""
        self._told = 0.0

    def __call__(self, stage: str, detail: str = "") -> None:
        if stage != self._stage or time.monotonic() - self._told > PROGRESS_INTERVAL_SECONDS:
            print(f"trivet: {stage}{detail and f': {detail}'}", file=sys.stderr, flush=True)
            self._stage, self._told = stage, time.monotonic()
