"""Commands that move memories: export, import, backup, and tenants between databases."""

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
    more="The lines hold every memory with its history, then the links. Sensitive memories are "
    "left out unless you ask for them. An --output file appears only once it is complete, "
    "and only you can read it. The last line holds counts and a checksum, so that an import "
    "notices a truncated file. A damaged memory is skipped and named, and the exit status is "
    "5. With --markdown each memory is a file with front matter; run again to update the "
    "files, which also removes those of deleted memories. A file that you edited is left "
    "alone until `trivet ingest` has read it.",
    example="trivet export --output memories.jsonl\ntrivet export | gzip > memories.jsonl.gz\n"
    "trivet export --markdown ~/memories",
)
def export(
    session: Session,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write; default: standard output."
        ),
    ] = None,
    include_sensitive: Annotated[
        bool,
        typer.Option("--include-sensitive", help="Also export sensitive memories, unencrypted."),
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FOLDER", help="Write or update a folder of Markdown files."
        ),
    ] = None,
) -> int:
    if markdown is not None and output is not None:
        raise InvalidInput(
            "--output is only for lines of JSON. Nothing was written. With --markdown, name only "
            "the folder."
        )
    rows = ExportRows(session.memory.export(include_sensitive=include_sensitive))
    if markdown is not None:
        status = _mirror(session, iter(rows), markdown.expanduser())
    else:
        status = _write_lines(session, rows, output)
    for what in rows.unreadable():
        warn(f"Skipped a damaged memory: {what}. `trivet doctor` says more.")
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
    counts = (
        f"{done.written} files written, {done.unchanged} unchanged, {done.removed} removed in "
        f"{folder}."
    )
    left = [
        line((f"Left unchanged because you edited it: {name}. Ingest it first.", "yellow"))
        for name in done.left
    ]
    session.show(done, lambda: [line(counts), *left])
    return INVALID if done.left else 0


@command(
    "import",
    "Import an export, plain lines of JSON with at least a `content`, or another program's "
    "memories.",
    more="Deletes nothing. A memory with the same content stays as it is; different content under "
    "the same id becomes a new revision if it is newer. A bad line is skipped and named, the "
    "rest is imported, and the exit status is 2, as for a truncated or altered export. With "
    "--from, FILE is another program's file or folder, which is only read; docs/import.md "
    "says where each program keeps it.",
    example="trivet import memories.jsonl\nzcat memories.jsonl.gz | trivet import -\n"
    "trivet import --from claude-mem ~/.claude-mem/claude-mem.db --dry-run",
    creates=True,
)
def import_file(
    session: Session,
    file: Annotated[
        str, typer.Argument(help="The file to read; `-` reads standard input.", show_default=False)
    ],
    system: Annotated[
        SystemName | None, typer.Option("--from", help="The program to import from.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope",
            "-s",
            metavar="TEXT",
            help="With --from: the scope; default: the configured one.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="With --from: show what would be imported and write nothing."
        ),
    ] = False,
) -> int:
    if system is not None:
        from trivet.cli.store_transfer import import_foreign_memories

        return import_foreign_memories(session, system, Path(file).expanduser(), scope, dry_run)
    if scope is not None or dry_run:
        raise InvalidInput(
            "--scope and --dry-run need --from: lines of JSON name their own scope. Nothing was "
            "imported."
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
    "Copy the store to a new file while it is in use, or restore such a copy.",
    more="Before --restore, stop every program that uses the store. It checks that FILE is a "
    "sound store. It refuses to replace an existing store unless you give --force, which "
    "moves that store aside and never deletes it.",
    example="trivet backup memory-2026-05-01.db\ntrivet backup --restore memory-2026-05-01.db",
)
def backup(
    session: Session,
    target: Annotated[
        Path | None, typer.Argument(help="The file to write.", show_default=False)
    ] = None,
    restore: Annotated[
        Path | None,
        typer.Option("--restore", metavar="FILE", help="Restore this backup as the store."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="With --restore: move an existing store aside.")
    ] = False,
) -> None:
    if (target is None) == (restore is None):
        raise InvalidInput(
            "Name either the file to write or the backup to --restore. Nothing was written."
        )
    if restore is not None:
        _restore_backup(session, restore, force)
    elif target is not None:
        session.memory.backup(target)
        session.show({"path": str(target)}, lambda: [line(f"Copied the store to {target}.")])


def _restore_backup(session: Session, backup: Path, force: bool) -> None:
    from trivet.cli.store_transfer import restore_backup

    store = session.file
    aside = restore_backup(backup, store, force)
    value = {
        "path": str(store),
        "restored": str(backup),
        "moved_aside": str(aside) if aside else None,
    }
    moved = [line(f"Moved the previous store to {aside}.")] if aside else []
    session.show(value, lambda: [line(f"Restored {store} from {backup}."), *moved])


@command(
    "move",
    "Copy the store, with history, vectors and graph, into an empty tenant of a PostgreSQL "
    "database.",
    more="The file is not changed. Keep the password out of the command line: use PGPASSWORD or "
    "~/.pgpass. Secrets stay encrypted; to reveal them there, a user needs the keys of this "
    "machine. To copy back, run `trivet --path postgresql://... backup FILE`.",
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
        str | None, typer.Option("--tenant", metavar="NAME", help="The tenant to fill.")
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
        lambda: [line(f"Copied {count} memories of {file} to {shown} (tenant {settings.tenant}).")],
    )


@command(
    "migrate",
    "Update the tables of a PostgreSQL database, as the role that owns them.",
    more="Only needed if the server's own role does not own the tables; otherwise the server does "
    "this when it starts. Run it with the owner's role before you start a new version of the "
    "server. It also builds the vector index of a large tenant, named by --tenant or the "
    "settings. Keep the password out of the command line: use PGPASSWORD or ~/.pgpass.",
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
        str | None,
        typer.Option("--tenant", metavar="NAME", help="The tenant whose vectors are indexed."),
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
    """An export's lines, with what its last line reports as unreadable."""

    def __init__(self, rows: Iterable[str]) -> None:
        self._rows = rows
        self._last = ""

    def __iter__(self) -> Iterator[str]:
        for row in self._rows:
            self._last = row
            yield row

    def unreadable(self) -> tuple[str, ...]:
        """Return what the store could not read; valid after the last line."""
        if not self._last.startswith('{"trivet_export_end"'):
            return ()
        return msgspec.json.decode(self._last, type=prepared_type(_Left)).unreadable


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
    more="--path names the tenant's present database. The move copies the tenant, then the "
    "changes made meanwhile; for the last of them, writers get an error that asks them to "
    "retry in a few seconds. Then the new database is the tenant's home: servers whose "
    "setting `cells` names it follow, keys stay valid, and syncing laptops go on. After an "
    "interruption, run the same command again to continue. Until the switch, --abandon "
    "cancels the move. The closed old copy stays until `trivet tenant forget-moved`.",
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
    from trivet.store.postgres import tenant_move as moving

    with _servers(session, tenant) as (settings, old, stack):
        if abandon:
            new = _reached(settings, to, stack)
            moving.abandon(old, new, tenant, _Progress())
            text = f"Canceled the move of {tenant}; it stays at {old.address}."
            session.show({"tenant": tenant, "home": old.address}, lambda: [line(text)])
            return
        home = moving.move(old, _opened(settings, to, stack), tenant, _Progress())
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
    more="Works only after a completed move, if the new home has the tenant. The tenant's row "
    "stays and says where it went. The new home is named by the setting `cells` or --to.",
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
    import msgspec

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
