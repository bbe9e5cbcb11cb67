"""An ingest that is killed midway continues where it stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.notes import Write, everything
from trivet import Trivet
from trivet.sources.files import ingest

KILLED = """
import os, sys
from trivet import Trivet
from trivet.sources.files import ingest
import trivet.sources.files.ingestion as changes
real, count = changes.apply, [0]
def apply(*arguments):
    count[0] += 1
    if count[0] == int(sys.argv[3]):
        os.kill(os.getpid(), 9)
    real(*arguments)
changes.apply = apply
with Trivet.open(sys.argv[1], embedder="none", background=False) as memory:
    ingest(memory, sys.argv[2])
"""


def test_killed_ingest_continues_where_it_stopped(path: Path, write: Write, vault: Path) -> None:
    for number in range(6):
        write(
            f"{number}.md",
            f"# N{number}\n\nfirst of {number}, see [[{(number + 1) % 6}]]\n\n## B\n\nrest {number}\n",
        )
    for after in (1, 2, 3, 2):
        ended = subprocess.run([sys.executable, "-c", KILLED, path, vault, str(after)], check=False)
        assert ended.returncode == -9
        with Trivet.open(path, embedder="none", background=False) as memory:
            assert memory.list(limit=100).total % 2 == 0  # whole files
    with Trivet.open(path, embedder="none", background=False) as memory:
        done = ingest(memory, vault)
        assert (len(everything(memory)), done.links_added) == (12, 6)
        again = ingest(memory, vault)
        assert (again.changed, again.links_added, again.links_removed) == (False, 0, 0)


def test_move_killed_midway_keeps_the_id(path: Path, write: Write, vault: Path) -> None:
    """Two files exchange a section, and the process dies between their two transactions."""
    one, two = "# A\n\nalpha\n\n## S\n\n{}\n", "# B\n\nbeta\n\n## T\n\n{}\n"
    write("a.md", one.format("from a to b"))
    write("b.md", two.format("from b to a"))
    with Trivet.open(path, embedder="none", background=False) as memory:
        ingest(memory, vault)
        before = {text: memory.id for text, memory in everything(memory).items()}
    write("a.md", one.format("from b to a").replace("## S", "## S2"))
    write("b.md", two.format("from a to b").replace("## T", "## T2"))
    assert (
        subprocess.run([sys.executable, "-c", KILLED, path, vault, "2"], check=False).returncode
        == -9
    )
    with Trivet.open(path, embedder="none", background=False) as memory:
        ingest(memory, vault)
        assert {text: memory.id for text, memory in everything(memory).items()} == before
