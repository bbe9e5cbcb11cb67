"""Moving a file's memories to a database server, and bringing such a server up to date."""

from __future__ import annotations

from pathlib import Path

from trivet.errors import InvalidInput
from trivet.memory.open_store import open_store
from trivet.memory.secrets import note_keys
from trivet.settings import Settings
from trivet.settings.address import database_of
from trivet.store.servers import open_server
from trivet.store.sqlite import SqliteStore
from trivet.trivet import Trivet


def move_to_server(file: Path, settings: Settings) -> int:
    """Copies the file into the empty tenant that the settings name; says how many memories there are now."""
    kind = database_of(settings.path)
    if kind is None:
        raise InvalidInput("Name where to move as postgresql://USER@HOST/DATABASE. Nothing was moved.")
    if not file.is_file():
        raise InvalidInput(f"There is no store at {file}. Nothing was moved; name the file with --path.")
    server = open_server(settings, kind)
    try:
        SqliteStore(file, settings.busy_time_limit_ms).close()  # brings its schema up to date
        store = open_store(settings, server)
        server.import_file(file, settings.tenant)
        with Trivet.open(settings=settings, embedder="none", background=False) as moved:
            note_keys(moved.engine)
        return sum(store.memories.stats().memories.values())
    finally:
        server.close()


def migrate_server(settings: Settings) -> int:
    """Opens the database as the owner of its tables, which brings them up to date; the version they have then."""
    kind = database_of(settings.path)
    if kind is None:
        raise InvalidInput("Name the database as postgresql://OWNER@HOST/DATABASE. Nothing was changed.")
    server = open_server(settings, kind)
    try:
        if server.has_tenant(settings.tenant):
            server.store(settings.tenant).vectors.prepare()
        return server.schema
    finally:
        server.close()
