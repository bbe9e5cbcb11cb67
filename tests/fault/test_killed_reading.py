"""If a process is killed while the model reads, another takes over after the lease expires."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from support.store_fixtures import Opened
from support.triples_model import Held, knows, serving, states
from support.waiting import LIMIT_SECONDS

READER = """
import sys
from trivet import Trivet
memory = Trivet.open(sys.argv[1], embedder="none", background=False, graph_llm=sys.argv[2])
memory.engine.worker.read_triples()
"""


def test_killed_while_reading(open_trivet: Opened, path: Path, held: Held) -> None:
    trivet = open_trivet()
    trivet.remember("Mira works at Acme.")
    with serving(lambda _: None) as silent:
        process = subprocess.Popen([sys.executable, "-c", READER, str(path), silent.spec])
        assert silent.asked.wait(60)
        process.kill()
        process.wait(LIMIT_SECONDS)
    with serving(knows({"Mira": [states("Mira", "works at", "Acme")]})) as model:
        other = open_trivet(graph_llm=model.spec)
        assert other.engine.worker.read_triples() == 0, "still leased to the killed process"
        _expire_lease(path)
        assert other.engine.worker.read_triples() == 1
        assert [row[:3] for row in held()] == [("mira", "works at", "acme")]


def _expire_lease(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "UPDATE reading SET not_before = not_before - 100000 WHERE reader = 'triples'"
        )
    connection.close()
