"""A process killed while it writes an index file leaves nothing that is read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.postgres_server import PostgresServer
from support.store_fixtures import Opened
from support.stores import add, found, memory
from support.waiting import LIMIT_SECONDS
from trivet.store.postgres import PostgresStore
from trivet.store.relational.index import write_index as index_upkeep

WRITER = """
import sys
from trivet import Trivet
from trivet.store.relational.index import index_files, write_index

def half(stream, *_):
    stream.write(b"half of a file")
    stream.flush()
    print("writing", flush=True)
    sys.stdin.read()

index_files.ArrayWriter = half
write_index.MIN_MEMORIES = 1
Trivet.open(sys.argv[1], embedder="none", background=False).engine.store.upkeep.renew_index()
"""


# The arrays that a new process has mapped after a search by words.
READER = """
import sys
from support.stores import found
from trivet.store.postgres import PostgresStore

store = PostgresStore(sys.argv[1])
store._database.read_postings = None
assert found(store, "relay")
print(open("/proc/self/maps").read())
"""


def kill_while_writing(store: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, store],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    process.kill()
    process.communicate(timeout=LIMIT_SECONDS)


def test_killed_while_writing(
    open_trivet: Opened, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_upkeep, "MIN_MEMORIES", 1)
    trivet = open_trivet()
    trivet.remember("The harbour office keeps the relay.")
    kill_while_writing(str(path))
    folder = path.with_name(f"{path.name}.index")
    (left,) = folder.iterdir()
    assert left.suffix == ".partial"
    other = open_trivet()
    assert [hit.memory.content for hit in other.recall("relay").hits] == [
        "The harbour office keeps the relay."
    ]
    other.purge(other.recall("relay").hits[0].memory.id)
    assert not list(folder.iterdir()), "leftovers may hold purged text"


def test_killed_while_writing_a_server_tenants_file(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_upkeep, "MIN_MEMORIES", 1)
    url = postgres.database()
    store, one = PostgresStore(url), memory("the relay")
    add(store, one)
    kill_while_writing(url)
    folder = store._database.index_files.folder
    (left,) = folder.iterdir()
    assert left.suffix == ".partial"
    assert not store.upkeep.renew_index(), "another process appears to be writing"
    store.memories.purge(one.id)
    assert not list(folder.iterdir()), "leftovers may hold purged text"
    store.close()
    postgres.drop(url)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists a process's mappings")
def test_new_process_maps_the_file_of_another(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_upkeep, "MIN_MEMORIES", 1)
    url = postgres.database()
    store = PostgresStore(url)
    add(store, memory("the relay"))
    assert found(store, "relay")
    assert store.upkeep.renew_index()
    (file,) = store._database.index_files.folder.iterdir()
    command = [sys.executable, "-c", READER, url]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    told = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS
    )
    assert file.name in told.stdout
    store.close()
    postgres.drop(url)
