"""A migration that is killed midway leaves the old store intact."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.version_one import contents, make_version_one
from trivet.store.sql_files import step
from trivet.store.sqlite.database import FOLDER, _statements
from trivet.store.sqlite.store import SqliteStore

# Opens a store, and is killed after this many statements of the migration.
KILLED = """
import os, signal, sys
from pathlib import Path
from trivet.store.sqlite import SqliteStore, database

def until(script, whole=database._statements):
    for number, statement in enumerate(whole(script)):
        if number == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        yield statement
    os.kill(os.getpid(), signal.SIGKILL)

database._statements = until
SqliteStore(Path(sys.argv[1]))
"""


STEPS = len(list(_statements(step(FOLDER, 2).sql)))


@pytest.mark.parametrize("after", [0, 1, STEPS // 2, STEPS - 1, STEPS])
def test_killed_migration_leaves_the_old_store_intact(path: Path, after: int) -> None:
    memories = make_version_one(path, more=20)
    before = contents(path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), str(after)])
    assert killed.returncode == -signal.SIGKILL
    assert contents(path) == before
    store = SqliteStore(path)
    assert list(store.memories.everything()) == list(memories)
    assert store.graph.backlog("rules").waiting == 23
    assert [finding.check for finding in store.upkeep.findings() if not finding.ok] == []
    store.close()
