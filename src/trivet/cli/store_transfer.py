"""Import from other programs, restore of backups, and moves to PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from trivet import Trivet
from trivet.cli.session import Session
from trivet.cli.terminal import INVALID, DelayedProgress, Line, line, one_line
from trivet.cli.views import memories as views
from trivet.common.files import private_folder
from trivet.errors import Conflict, InvalidInput, StoreError
from trivet.memory.open_store import open_store
from trivet.memory.sealed_secrets import register_keys
from trivet.secrets.detect import find
from trivet.settings import Settings
from trivet.settings.locations import APPLICATION_ID, database_of
from trivet.sources.other_memories.foreign import ForeignMemory, ForeignSystem, SystemName
from trivet.sources.other_memories.systems import SYSTEMS, import_lines
from trivet.store.servers import open_server
from trivet.store.sqlite.store import SqliteStore

EXAMPLES = 3


def import_foreign_memories(
    session: Session, name: SystemName, path: Path, scope: str | None, dry_run: bool
) -> int:
    system = SYSTEMS[name]
    if not path.exists():
        raise InvalidInput(f"{path} does not exist. For {system.label}, name {system.reads}.")
    found = list(system.read(path))
    settings = session.memory.settings
    rows = list(import_lines(name, found, scope or settings.scope, settings.categories))
    kinds = Counter(one.kind for one in found)
    mapping = dict(system.mapping)
    if dry_run:
        value = {"from": name, "found": kinds, "mapping": mapping, "lines": len(rows)}
        session.show(value, lambda: _preview(system, found, kinds))
        return 0
    with DelayedProgress("importing", lambda _: len(rows)) as progress:
        imported = session.memory.import_(iter(rows), progress=progress)
    value = {"from": name, "found": kinds, "mapping": mapping, **msgspec.structs.asdict(imported)}
    session.show(value, lambda: [*_summary(system, kinds), *views.imported(imported)])
    if session.memory.server is None:
        session.embed_pending()
    return INVALID if imported.errors else 0


def _summary(system: ForeignSystem, kinds: Counter[str]) -> Iterator[Line]:
    counts = (
        ", ".join(f"{count} of the kind {kind}" for kind, count in sorted(kinds.items()))
        or "nothing"
    )
    yield line(f"{system.label}: {counts}.")
    for theirs, ours in system.mapping:
        yield line((theirs, "bold"), f" -> {ours}", indent=4)


def _preview(
    system: ForeignSystem, found: Sequence[ForeignMemory], kinds: Counter[str]
) -> Iterator[Line]:
    yield from _summary(system, kinds)
    for one in found[:EXAMPLES]:
        title, content = (one_line(_masked(text)) for text in (one.title, one.content))
        facts = [
            one.category,
            " ".join(f"#{tag}" for tag in one.tags),
            "sensitive" if one.sensitive else title,
        ]
        yield line(("for example ", "dim"), " · ".join(filter(None, facts)), indent=4)
        yield line("[sensitive]" if one.sensitive else content[:160], indent=8)
    yield line("Nothing was written. Run it without --dry-run to import them.")


def _masked(text: str) -> str:
    for secret in reversed(find(text)):
        text = f"{text[: secret.start]}[{secret.kind}]{text[secret.stop :]}"
    return text


# The first holds SQLite's newest writes until a checkpoint.
LOG_SUFFIXES = ("-wal", "-shm", "-journal")


def restore_backup(backup: Path, store: Path, force: bool) -> Path | None:
    """Replace `store` by a copy of `backup`, whole or not at all.

    Return the path to which the previous store was moved, if any.
    """
    if not backup.is_file():
        raise InvalidInput(f"{backup} is not a file. Name a backup made by `trivet backup`.")
    if store.exists() and not force:
        raise Conflict(
            f"There is a store at {store} already. Use --force to move it aside, or give another "
            "--path."
        )
    partial = store.with_name(store.name + ".partial")
    try:
        private_folder(store.parent)
        _remove(partial)
        _copy(backup, partial)
        _check(partial, backup)
        aside = _move_aside(store) if store.exists() else None
        partial.rename(store)
    except OSError as error:
        raise StoreError(
            f"{backup} cannot be restored: {error.strerror} ({error.filename})."
        ) from None
    finally:
        _remove(partial)
    with Trivet.open(store, embedder="none", background=False) as memory:
        register_keys(memory.engine)
    return aside


def _copy(backup: Path, partial: Path) -> None:
    partial.touch(mode=0o600)
    # SQLite's backup includes writes in a log next to the file.
    try:
        with (
            closing(sqlite3.connect(f"{backup.resolve().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(partial)) as copy,
        ):
            if source.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raise StoreError(f"{backup} is not a Trivet store. Nothing was changed.")
            source.backup(copy)
    except sqlite3.Error as error:
        raise StoreError(
            f"{backup} is not a Trivet store or is damaged ({error}). Nothing was changed."
        ) from None


def _check(partial: Path, backup: Path) -> None:
    with Trivet.open(partial, embedder="none", background=False) as memory:
        problems = [
            finding
            for finding in memory.doctor()
            if not finding.ok and finding.check == "database file"
        ]
    if problems:
        raise StoreError(f"{backup} is damaged ({problems[0].detail}). Nothing was changed.")


def _move_aside(store: Path) -> Path:
    # Logs first: a store next to another store's log is damaged, a log alone is not.
    _checkpoint_log(store)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    aside = store.with_name(f"{store.name}.before-{moment}")
    for suffix in LOG_SUFFIXES:
        companion = Path(f"{store}{suffix}")
        if companion.exists():
            companion.rename(f"{aside}{suffix}")
    store.rename(aside)
    return aside


def _checkpoint_log(store: Path) -> None:
    try:
        with closing(sqlite3.connect(store)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:  # a damaged store moves aside as it is, so that it can still be repaired
        return


def _remove(partial: Path) -> None:
    for suffix in ("", *LOG_SUFFIXES):
        Path(f"{partial}{suffix}").unlink(missing_ok=True)


def move_to_server(file: Path, settings: Settings) -> int:
    """Copy the file into the tenant of the settings; return its number of memories."""
    kind = database_of(settings.path)
    if kind is None:
        raise InvalidInput("Name the target as postgresql://USER@HOST/DATABASE. Nothing was moved.")
    if not file.is_file():
        raise InvalidInput(
            f"There is no store at {file}. Nothing was moved; name the file with --path."
        )
    server = open_server(settings, kind)
    try:
        SqliteStore(file, settings.busy_time_limit_ms).close()  # brings its schema up to date
        store = open_store(settings, server)
        server.import_file(file, settings.tenant)
        with Trivet.open(settings=settings, embedder="none", background=False) as moved:
            register_keys(moved.engine)
        return sum(store.memories.stats().memories.values())
    finally:
        server.close()


def migrate_server(settings: Settings) -> int:
    """Update the database's tables as their owner; return the schema version."""
    kind = database_of(settings.path)
    if kind is None:
        raise InvalidInput(
            "Name the database as postgresql://OWNER@HOST/DATABASE. Nothing was changed."
        )
    server = open_server(settings, kind)
    try:
        if server.has_tenant(settings.tenant):
            server.store(settings.tenant).vectors.prepare()
        return server.schema
    finally:
        server.close()
