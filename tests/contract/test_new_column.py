"""A new memory column needs only its type, a field table line, and a migration per store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.postgres_server import PostgresServer
from support.stores import add, memory
from trivet.store.postgres import PostgresStore
from trivet.store.sqlite.store import SqliteStore

# Adds the column `colour` as a source change would, then passes memories through every part that
# must carry it.
NEW_COLUMN = """
import sys
from pathlib import Path

import msgspec

import trivet.types

class Memory(trivet.types.memories.Memory, frozen=True, kw_only=True):
    colour: str = "none"

for module in (trivet.types, trivet.types.memories, trivet.types.answers):
    module.Memory = Memory

from trivet import memory_fields

memory_fields.FIELDS = (*memory_fields.FIELDS, memory_fields.Field("colour", "text", front="colour"))

from trivet.store import sql_files

COLUMN = "ALTER TABLE memory ADD COLUMN colour text NOT NULL DEFAULT 'none';"
latest, step = sql_files.latest_version, sql_files.step
sql_files.latest_version = lambda folder: latest(folder) + 1
sql_files.step = lambda folder, number: (
    sql_files.MigrationStep(number, COLUMN) if number > latest(folder) else step(folder, number)
)

from support.stores import add, memory, replace
from trivet.memory.admin.importer import MemoryLine, _same
from trivet.sources.files.front_matter import split_front_matter
from trivet.sources.files.front_matter import parse_mirror, written
from trivet.store.postgres import PostgresStore
from trivet.store.sqlite import SqliteStore
from trivet.types import Filter

file, url, old = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def blue(content):
    return Memory(**{**msgspec.structs.asdict(memory(content)), "colour": "blue"})

def check(store):
    assert store.memories.get(old).colour == "none"
    one = blue("the sky")
    add(store, one)
    assert store.memories.get(one.id) == one
    assert one in store.memories.page(Filter(), "recency", 10, 0).memories
    red = replace(store, msgspec.structs.replace(one, colour="red"))
    assert store.memories.get(one.id).colour == red.colour == "red"
    history = store.memories.revisions(one.id)
    assert [revision.memory.colour for revision in history] == ["blue", "red"]
    line = msgspec.json.encode(MemoryLine(red, history))
    assert msgspec.json.decode(line, type=MemoryLine).memory == red
    assert not _same(one, red)
    front, body, _ = split_front_matter(written(red, []))
    assert parse_mirror(front, body).fields["colour"] == "red"
    return one.id

embedded, server = SqliteStore(file), PostgresStore(url)
kept, there = check(embedded), check(server)
server.upkeep.backup(file.with_name("backup.db"))
backup = SqliteStore(file.with_name("backup.db"))
assert backup.memories.get(there).colour == "red"
moved = PostgresStore(url, "moved")
moved.import_sqlite(file)
assert moved.memories.get(kept).colour == "red"
for store in (embedded, server, backup, moved):
    store.close()
"""


def test_new_column_is_carried_everywhere(tmp_path: Path, postgres: PostgresServer) -> None:
    url, one = postgres.database(), memory("what was there before")
    for store in (SqliteStore(tmp_path / "memory.db"), PostgresStore(url)):
        add(store, one)
        store.close()
    arguments = [sys.executable, "-c", NEW_COLUMN, str(tmp_path / "memory.db"), url, one.id]
    tests = Path(__file__).parents[1]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=tests)
    assert done.returncode == 0, done.stderr
    postgres.drop(url)
