"""Commands that move memories: export, import, backup, and copies to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import (
    INVALID,
    STORE_ERROR,
    DelayedProgress,
    line,
    open_lines,
    warn,
    write_rows_atomically,
    write_text,
)
from trivet.cli.views import memories as views
from trivet.common.threads import prepared_type
from trivet.errors import InvalidInput
from trivet.sources.other_memories.foreign import SystemName


@command(
    "export",
    "Write the whole store as lines of JSON, or as a folder of Markdown files.",
    more="The lines hold every memory with its history, then the links, counts and a checksum. "
    "An --output file appears only once it is complete, and only you can read it. A damaged "
    "memory is skipped and named, and the exit status is 5. With --markdown each memory is a "
    "file with front matter. A later run updates the folder and removes the files of deleted "
    "memories, but leaves a file that you edited alone until `trivet ingest` has read it.",
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
    count = write_rows_atomically(output, rows)
    value = {"path": str(output), "lines": count}
    session.show(value, lambda: [line(f"Wrote {count} lines to {output}.")])
    return 0


def _mirror(session: Session, rows: Iterator[str], folder: Path) -> int:
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
    more="Deletes nothing. A memory with the same content stays; different content under the "
    "same id becomes a new revision if it is newer. A bad line is skipped and named, and the "
    "exit status is 2, as for a truncated or altered export. With --from, FILE is another "
    "program's file or folder, which is only read (docs/import.md).",
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
    more="Before --restore, stop every program that uses the store. The command checks that FILE "
    "is a sound store. Only --force replaces an existing store; it moves that store aside and "
    "never deletes it.",
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
    more="The file does not change. Give the password in PGPASSWORD or ~/.pgpass, not in "
    "ADDRESS. Secrets stay encrypted; users need this machine's keys to reveal them. `trivet "
    "--path postgresql://... backup FILE` copies back.",
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
    more="Needed only if the server's role does not own the tables: run it as the owner before "
    "you start a new version. It also builds the vector index of a large tenant, named by "
    "--tenant or the settings. Give the password in PGPASSWORD or ~/.pgpass, not in ADDRESS.",
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
