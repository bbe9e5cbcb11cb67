"""Memories on the move: export, import, backup, and to a server.

The lines of an export on their way to a file, and what its last line says was left out.

`trivet tenant`: moves tenants between databases, and shows where they are.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import (
    INVALID,
    STORE_ERROR,
    DelayedProgress,
    Line,
    line,
    open_lines,
    warn,
    write_text,
)
from trivet.cli.views import memories as views
from trivet.common.threads import prepared_type
from trivet.errors import InvalidInput, StoreError
from trivet.sources.other_memories.foreign import SystemName

if TYPE_CHECKING:
    from trivet.settings import Settings
    from trivet.store.postgres.server import Server


@command(
    "export",
    "Write the whole store as lines of JSON, or as a folder of Markdown files.",
    more="The lines hold every memory with its history, then the links. Sensitive memories stay in the store unless "
    "you ask for them. With --output the file appears only when it is whole, and only you may read it. The last line "
    "has counts and a checksum, by which an import notices what was cut off. A damaged memory is left out and named, "
    "and the exit status is 5. With --markdown each memory is a file, its fields as front matter; done again, files "
    "are renewed, and go with their memories. A file that you have edited is left alone until `trivet ingest` has "
    "taken it in.",
    example="trivet export --output memories.jsonl\ntrivet export | gzip > memories.jsonl.gz\n"
    "trivet export --markdown ~/memories",
)
def export(
    session: Session,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write; standard output if none."
        ),
    ] = None,
    include_sensitive: Annotated[
        bool,
        typer.Option("--include-sensitive", help="Export sensitive memories too, in the clear."),
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FOLDER", help="Keep a folder of Markdown files up to date."
        ),
    ] = None,
) -> int:
    if markdown is not None and output is not None:
        raise InvalidInput("--output is for lines of JSON. With --markdown, name the folder alone.")
    rows = ExportRows(session.memory.export(include_sensitive=include_sensitive))
    if markdown is not None:
        status = _mirror(session, iter(rows), markdown.expanduser())
    else:
        status = _write_lines(session, rows, output)
    for what in rows.unreadable():
        warn(f"It is damaged and was left out: {what}. `trivet doctor` says more.")
    return STORE_ERROR if rows.unreadable() else status


def _write_lines(session: Session, rows: ExportRows, output: Path | None) -> int:
    if output is None or str(output) == "-":
        for row in rows:
            write_text(f"{row}\n")
        return 0
    from trivet.cli.terminal import write_rows_atomically

    count = write_rows_atomically(output, rows)
    value = {"path": str(output), "lines": count}
    session.show(value, lambda: [line(f"Wrote {count} lines to {output}.")])
    return 0


def _mirror(session: Session, rows: Iterator[str], folder: Path) -> int:
    from trivet.cli.terminal import write_rows_atomically
    from trivet.sources.files.mirror import mirror

    done = mirror(
        rows, folder, lambda file, text: write_rows_atomically(file, [text.removesuffix("\n")])
    )
    counts = f"{done.written} files written, {done.unchanged} unchanged, {done.removed} removed in {folder}."
    left = [
        line((f"Left as it is, since you edited it: {name}. Ingest it first.", "yellow"))
        for name in done.left
    ]
    session.show(done, lambda: [line(counts), *left])
    return INVALID if done.left else 0


@command(
    "import",
    "Take in an export, plain lines of JSON with at least a `content`, or what another memory keeps.",
    more="Nothing that is here is deleted. The same content is left as it is; other content under the same id wins if "
    "it was changed later, as a new revision. A bad line costs only itself: the rest is taken in, the bad ones are "
    "named, and the exit status is 2. So it is where an export was cut off or changed on its way. With --from, FILE is "
    "another program's own file or folder, which is only read; docs/import.md says where each keeps it.",
    example="trivet import memories.jsonl\nzcat memories.jsonl.gz | trivet import -\n"
    "trivet import --from claude-mem ~/.claude-mem/claude-mem.db --dry-run",
    creates=True,
)
def import_file(
    session: Session,
    file: Annotated[
        str, typer.Argument(help="The file to read. `-` reads standard input.", show_default=False)
    ],
    system: Annotated[
        SystemName | None, typer.Option("--from", help="The program whose memories they are.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope", "-s", metavar="TEXT", help="With --from: the scope; the configured if none."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="With --from: show what becomes what, and write nothing."),
    ] = False,
) -> int:
    if system is not None:
        from trivet.cli.store_transfer import import_foreign_memories

        return import_foreign_memories(session, system, Path(file).expanduser(), scope, dry_run)
    if scope is not None or dry_run:
        raise InvalidInput(
            "--scope and --dry-run go with --from. Lines of JSON say their own scope."
        )
    with open_lines(file) as rows, DelayedProgress("importing", lambda _: None) as progress:
        imported = session.memory.import_(_without_line_ends(rows), progress=progress)
    session.show(imported, lambda: views.imported(imported))
    session.embed_pending()
    return INVALID if imported.errors else 0


def _without_line_ends(rows: Iterator[str]) -> Iterator[str]:
    return (row.rstrip("\r\n") for row in rows)


@command(
    "backup",
    "Copy the store to a new file while others go on using it, or put such a copy back.",
    more="--restore first checks that FILE is a sound store. If there is a store in the place already it is refused, "
    "unless you say --force; then the present one is moved aside, never deleted. Stop what else uses the store first.",
    example="trivet backup memory-2026-05-01.db\ntrivet backup --restore memory-2026-05-01.db",
)
def backup(
    session: Session,
    target: Annotated[Path | None, typer.Argument(help="The new file.", show_default=False)] = None,
    restore: Annotated[
        Path | None,
        typer.Option("--restore", metavar="FILE", help="Put this backup in the store's place."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="With --restore: move the present store aside.")
    ] = False,
) -> None:
    if (target is None) == (restore is None):
        raise InvalidInput("Name the file to write, or the backup to --restore, and not both.")
    if restore is not None:
        _restore_backup(session, restore, force)
    elif target is not None:
        session.memory.backup(target)
        session.show({"path": str(target)}, lambda: [line(f"The store is copied to {target}.")])


def _restore_backup(session: Session, backup: Path, force: bool) -> None:
    from trivet.cli.store_transfer import restore_backup

    store = session.file
    aside = restore_backup(backup, store, force)
    value = {
        "path": str(store),
        "restored": str(backup),
        "moved_aside": str(aside) if aside else None,
    }
    moved = [line(f"The store that was there is now {aside}.")] if aside else []
    session.show(value, lambda: [line(f"{store} is restored from {backup}."), *moved])


@command(
    "move",
    "Copy the store, with its history, vectors and graph, into an empty tenant of a PostgreSQL database.",
    more="The file stays as it is. Keep the password out of the command line: PGPASSWORD or ~/.pgpass may hold it. "
    "Secrets stay sealed; who reveals them there needs the keys they were sealed with here. "
    "`trivet --path postgresql://... backup FILE` is the way back.",
    example="trivet move postgresql://trivet@db.example/trivet --tenant ann",
)
def move(
    session: Session,
    target: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="postgresql://USER@HOST/DATABASE", show_default=False
        ),
    ],
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Whose memories they are there.")
    ] = None,
) -> None:
    from trivet import load_settings
    from trivet.cli.store_transfer import move_to_server
    from trivet.settings.locations import without_password

    file, settings = session.file, load_settings(path=target, tenant=tenant)
    count = move_to_server(file, settings)
    shown = without_password(target)
    value = {"path": str(file), "target": shown, "tenant": settings.tenant, "memories": count}
    session.show(
        value,
        lambda: [line(f"{count} memories of {file} are at {shown} (tenant {settings.tenant}).")],
    )


@command(
    "migrate",
    "Bring the tables of a PostgreSQL database up to date, as the role that owns them.",
    more="A server whose role owns the tables does this by itself when it starts. Where it is to have fewer rights, "
    "two roles share the work: the owner's is used by this command alone, before a new version of the server starts; "
    "the server's own reads and writes. It also builds the index of a tenant with very many vectors, the one that "
    "--tenant or the settings name. Keep the password out of the command line: PGPASSWORD or ~/.pgpass may hold it.",
    example="trivet migrate postgresql://trivet_owner@db.example/trivet",
    uses_store=False,
)
def migrate(
    session: Session,
    target: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="postgresql://OWNER@HOST/DATABASE", show_default=False
        ),
    ],
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Whose vectors are indexed.")
    ] = None,
) -> None:
    from trivet import load_settings
    from trivet.cli.store_transfer import migrate_server
    from trivet.settings.locations import without_password

    schema = migrate_server(load_settings(path=target, tenant=tenant))
    shown = without_password(target)
    session.show(
        {"target": shown, "schema": schema}, lambda: [line(f"{shown} is at schema {schema:04}.")]
    )


class _Left(msgspec.Struct, frozen=True):
    unreadable: tuple[str, ...] = ()


class ExportRows:
    def __init__(self, rows: Iterable[str]) -> None:
        self._rows = rows
        self._last = ""

    def __iter__(self) -> Iterator[str]:
        for row in self._rows:
            self._last = row
            yield row

    def unreadable(self) -> tuple[str, ...]:
        """Once all lines are written: what the store could not read."""
        if not self._last.startswith('{"trivet_export_end"'):
            return ()
        return msgspec.json.decode(self._last, type=prepared_type(_Left)).unreadable


TenantArgument = Annotated[
    str, typer.Argument(metavar="TENANT", help="The name of the tenant.", show_default=False)
]
ToOption = Annotated[
    str,
    typer.Option("--to", metavar="DATABASE", help="The new home: postgresql://USER@HOST/DATABASE."),
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
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give the move up; the tenant stays.")
    ] = False,
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
        pending = tenant_move.forget_moved(
            old, _open_target(settings, old, tenant, to, stack), tenant
        )
        if pending:
            warn(pending)
        said = f"The old copy of {tenant} in {old.address} is removed."
        session.show(
            {"tenant": tenant, "removed_from": old.address, "pending": pending},
            lambda: [line(said)],
        )


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
        raise InvalidInput(
            "Tenants move between PostgreSQL databases: name both as postgresql://USER@HOST/DATABASE."
        )
    from trivet.store.postgres.store import open_server

    server = open_server(msgspec.structs.replace(settings, path=address, replica_urls=()))
    stack.callback(server.close)
    return server


def _reached(settings: Settings, address: str, stack: ExitStack) -> Server | None:
    """None where it is away: a move can be given up without it."""
    try:
        return _opened(settings, address, stack)
    except StoreError as error:
        warn(
            f"What was copied there stays, closed, until this is done again or the tenant is moved there: {error}"
        )
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
        "home": f"{here}: at home"
        + (f"; it is being moved to {other}, not frozen yet." if other else "."),
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
