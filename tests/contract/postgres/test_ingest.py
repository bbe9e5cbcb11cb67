"""A PostgreSQL store follows a vault's edits, moves, deletions and links."""

from __future__ import annotations

import os
from pathlib import Path

from support.postgres_server import PostgresServer
from trivet import Trivet
from trivet.sources.files import drop, ingest


def test_vault_is_followed(postgres: PostgresServer, tmp_path: Path) -> None:
    vault = tmp_path / "notes"
    (vault / "sub").mkdir(parents=True)
    (vault / "a.md").write_text("# A\n\nfirst, see [[b]]\n\n## More\n\nsecond\n")
    (vault / "b.md").write_text("the other")
    for file in vault.glob("*.md"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    address = postgres.database()
    with Trivet.open(address, embedder="none", background=False) as memory:
        done = ingest(memory, vault)
        assert (done.stored, done.links_added, done.problems) == (3, 1, ())
        before = {one.content: one.id for one in memory.list().memories}
        (vault / "a.md").rename(vault / "sub" / "z.md")
        (vault / "b.md").write_text("the other, edited")
        done = ingest(memory, vault)
        assert (done.moved, done.updated, done.stored, done.forgotten) == (2, 1, 0, 0)
        after = {one.content: one.id for one in memory.list().memories}
        assert (after["second"], after["the other, edited"]) == (
            before["second"],
            before["the other"],
        )
        (vault / "b.md").unlink()
        assert ingest(memory, vault).forgotten == 1
        assert not ingest(memory, vault).changed
        assert drop(memory, "notes") == 2
        assert memory.list().total == 0
    postgres.drop(address)
