"""Commands that move tenants between PostgreSQL databases."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import Line, line, warn
from trivet.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from trivet.settings import Settings
    from trivet.store.postgres.server import Server

TenantArgument = Annotated[
    str, typer.Argument(metavar="TENANT", help="The name of the tenant.", show_default=False)
]
ToOption = Annotated[
    str,
    typer.Option(
        "--to", metavar="DATABASE", help="The database to move to: postgresql://USER@HOST/DATABASE."
    ),
]
PROGRESS_INTERVAL_SECONDS = 1.0


@command(
    "tenant move",
    "Move a tenant to another PostgreSQL database while it is in use.",
    more="--path names the tenant's present database. The tenant stays in use; only for the last "
    "changes, writers get an error that asks them to retry in a few seconds. Servers whose "
    "setting `cells` names the new database follow, keys stay valid, and syncing laptops go on. "
    "After an interruption, run the command again. Until the switch, --abandon cancels the move. "
    "The closed old copy stays until `trivet tenant forget-moved`.",
    example="trivet tenant move acme --path postgresql://trivet@db1/trivet --to "
    "postgresql://trivet@db2/trivet",
)
def move_tenant(
    session: Session,
    tenant: TenantArgument,
    to: ToOption,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Cancel the move; the tenant stays where it is.")
    ] = False,
) -> None:
    from trivet.store.postgres import tenant_move

    with _servers(session, tenant) as (settings, old, stack):
        if abandon:
            new = _reached(settings, to, stack)
            tenant_move.abandon(old, new, tenant, _Progress())
            text = f"Canceled the move of {tenant}; it stays at {old.address}."
            session.show({"tenant": tenant, "home": old.address}, lambda: [line(text)])
            return
        home = tenant_move.move(old, _opened(settings, to, stack), tenant, _Progress())
        rows = [
            line(f"{tenant} is now at {home}."),
            line(f"The old copy is closed and stays until `trivet tenant forget-moved {tenant}`."),
        ]
        session.show({"tenant": tenant, "home": home, "left": old.address}, lambda: rows)


@command(
    "tenant show",
    "Show whether a tenant is in this database, and how far its move is.",
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
        session.show(value, lambda: _standing_lines(value))


@command(
    "tenant forget-moved",
    "Remove the old copy of a moved tenant.",
    more="Works only after a completed move, if the new home, named by the setting `cells` or "
    "--to, has the tenant. The tenant's row stays and says where it went.",
    example="trivet tenant forget-moved acme --path postgresql://trivet@db1/trivet --to "
    "postgresql://trivet@db2/trivet",
)
def forget_moved(session: Session, tenant: TenantArgument, to: ToOption = "") -> None:
    from trivet.store.postgres import tenant_move

    with _servers(session, tenant) as (settings, old, stack):
        pending = tenant_move.forget_moved(
            old, _open_target(settings, old, tenant, to, stack), tenant
        )
        if pending:
            warn(pending)
        text = f"Removed the old copy of {tenant} in {old.address}."
        session.show(
            {"tenant": tenant, "removed_from": old.address, "pending": pending},
            lambda: [line(text)],
        )


@contextmanager
def _servers(session: Session, tenant: str) -> Iterator[tuple[Settings, Server, ExitStack]]:
    from trivet.memory.open_store import check_tenant
    from trivet.settings import load_settings

    check_tenant(tenant)
    settings = load_settings(path=session.path)
    with ExitStack() as stack:
        yield settings, _opened(settings, settings.path, stack), stack


def _opened(settings: Settings, address: str, stack: ExitStack) -> Server:
    from trivet.settings.locations import database_of

    if database_of(address) is None:
        raise InvalidInput(
            "Tenants move between PostgreSQL databases. Nothing was changed; name both as "
            "postgresql://USER@HOST/DATABASE."
        )
    from trivet.store.postgres.store import open_server

    server = open_server(msgspec.structs.replace(settings, path=address, replica_urls=()))
    stack.callback(server.close)
    return server


def _reached(settings: Settings, address: str, stack: ExitStack) -> Server | None:
    """Return None if the server is away: a move can be canceled without it."""
    try:
        return _opened(settings, address, stack)
    except StoreError as error:
        warn(
            "The copy on that server stays, closed, until you run this again or move the tenant "
            f"there: {error}"
        )
        return None


def _open_target(settings: Settings, old: Server, tenant: str, to: str, stack: ExitStack) -> Server:
    standing = old.standing(tenant)
    for address in (to,) if to else settings.cells:
        server = _opened(settings, address, stack)
        if to or (standing is not None and server.cell == standing.cell):
            return server
    raise InvalidInput("Name the tenant's new home with --to. Nothing was removed.")


def _standing_lines(value: dict[str, str]) -> list[Line]:
    here, other = f"{value['tenant']} in {value['database']}", value["other"]
    text = {
        "unknown": f"There is no {here}.",
        "home": f"{here}: at home"
        + (f"; it is being moved to {other} and still takes writes." if other else "."),
        "frozen": f"{here}: frozen for its move to {other}; reads work, writers must retry.",
        "moved": f"{here}: moved to {other}; any data here is an old copy.",
        "arriving": f"{here}: being moved here from {other}, its home until the switch.",
    }[value["standing"]]
    listed = (
        [line(f"The directory lists it at {value['directory']}.")] if value["directory"] else []
    )
    return [line(text), *listed]


class _Progress:
    def __init__(self) -> None:
        self._stage = ""
        self._printed = 0.0

    def __call__(self, stage: str, detail: str = "") -> None:
        if stage != self._stage or time.monotonic() - self._printed > PROGRESS_INTERVAL_SECONDS:
            print(f"trivet: {stage}{detail and f': {detail}'}", file=sys.stderr, flush=True)
            self._stage, self._printed = stage, time.monotonic()
