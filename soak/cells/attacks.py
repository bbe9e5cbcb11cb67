"""Moves to bad targets: a full disk, older tables, a stopped database, a wrong address.

`python -m soak.cells.attacks --out docs/results/cells-attacks.json`. After each attack the tenant
is still at home, takes writes, and moves once the problem is gone. Mounting the small disk takes
root.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from soak.cells.world import USUAL, note
from soak.syncing.manifest import manifest
from support.postgres_server import AS_NOBODY, PostgresServer
from trivet import Trivet, TrivetError
from trivet.store.postgres import PostgresStore, Server
from trivet.store.postgres.migrate import SCHEMA_VERSION, migrate
from trivet.store.postgres.tenant_move import move

# Socket folder of a cluster of this run.
_FOLDER = re.compile(r"/[\w/.-]*trivet-pg-\w+")
MEMORIES = 400
DISK = "64m"
# Leaves no room for the tenant's rows once an empty database is on the disk.
ROOM = 500_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.cells.attacks", description=__doc__)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    old, new = PostgresServer(), PostgresServer()
    try:
        found = {}
        for attack in (full_disk, older_tables, away, wrong_address, twice):
            found[attack.__name__] = attack(old, new)
            print(attack.__name__, found[attack.__name__], file=sys.stderr, flush=True)
    finally:
        old.remove()
        new.remove()
    result = {**manifest("soak.cells.attacks"), **found}
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(one["held"] for one in found.values()) else 1


def full_disk(old: PostgresServer, new: PostgresServer) -> dict[str, Any]:
    folder = new.folder / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], check=True)
    try:
        if AS_NOBODY:
            shutil.chown(folder, "nobody", "nogroup")
        with new.administrator() as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
            connection.execute("CREATE DATABASE small OWNER trivet TABLESPACE small")
        with new.administrator("small") as connection:
            connection.execute("CREATE EXTENSION vector")
        target = Server(new.url("small"))
        _fill(folder)
        told = _refused(old, target, (folder / "ballast").unlink)
        with new.administrator() as connection:
            connection.execute("DROP DATABASE small WITH (FORCE)")
            connection.execute("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    return told


def _fill(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    (folder / "ballast").write_bytes(bytes(free - ROOM))


def older_tables(old: PostgresServer, new: PostgresServer) -> dict[str, Any]:
    """Older tables are migrated by the role that owns them, before anything is copied."""
    url = new.empty_database()
    migrate(url, "the older one", SCHEMA_VERSION - 1)
    return _moves(old, lambda: Server(url))


def away(old: PostgresServer, new: PostgresServer) -> dict[str, Any]:
    """Stop the new database during the copy, then during the freeze."""
    url = new.database()
    with _tenant(old) as (source, trivet):
        server, told = Server(source, patience=1.0), []
        for stage in ("copying", "frozen"):
            target = Server(url, patience=1.0)

            def stop(now: str, detail: str, stage: str = stage) -> None:
                if now == stage:
                    new.stop("immediate")

            told.append(_error(lambda target=target, stop=stop: move(server, target, "acme", stop)))  # type: ignore[misc]
            trivet.remember("Written while the other one is away.")
            target.close()
            new.start()
        return {**_ends_well(server, Server(url), trivet), "told": told}


def wrong_address(old: PostgresServer, new: PostgresServer) -> dict[str, Any]:
    """Try no database, one where the role lacks rights, and the tenant's own under another name."""
    with _tenant(old) as (source, trivet):
        server = Server(source)
        name = str(psycopg.conninfo.conninfo_to_dict(source)["dbname"])
        told = [
            _error(lambda: move(server, Server(new.url("nothing")), "acme", _quiet)),
            _error(lambda: move(server, Server(new.url("postgres", "postgres")), "acme", _quiet)),
            _error(
                lambda: move(
                    server, Server(old.url(name) + "&application_name=other"), "acme", _quiet
                )
            ),
        ]
        trivet.remember("Written after it.")
        return {**_ends_well(server, Server(new.database()), trivet), "told": told}


def twice(old: PostgresServer, new: PostgresServer) -> dict[str, Any]:
    """Start moves to the same and to different places at once: one moves it, the rest fail."""
    with _tenant(old) as (source, _):
        urls = [new.database(), new.database()]
        told: list[str] = []

        def operate(url: str) -> None:
            told.append(_error(lambda: move(Server(source), Server(url), "acme", _quiet)))

        threads = [
            threading.Thread(target=operate, args=(url,)) for url in (urls[0], urls[0], urls[1])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        homes = [
            url
            for url in urls
            if (found := Server(url).standing("acme")) and found.standing == "home"
        ]
        return {
            "held": len(homes) == 1 and _count(homes[0]) == _count(source) > MEMORIES,
            "told": told,
        }


def _refused(old: PostgresServer, new: Server, mend: Callable[[], None]) -> dict[str, Any]:
    with _tenant(old) as (source, trivet):
        server = Server(source)
        told = _error(lambda: move(server, new, "acme", _quiet))
        trivet.remember("Written after it failed.")
        mend()
        return {**_ends_well(server, new, trivet), "told": [told]}


def _moves(old: PostgresServer, target: Callable[[], Server]) -> dict[str, Any]:
    with _tenant(old) as (source, trivet):
        return _ends_well(Server(source), target(), trivet)


def _ends_well(server: Server, new: Server, trivet: Trivet) -> dict[str, Any]:
    before = sum(trivet.stats().memories.values())
    standing = server.standing("acme")
    move(server, new, "acme", _quiet)
    after = sum(PostgresStore(new, "acme").memories.stats().memories.values())
    was_home = standing is not None and standing.standing == "home"
    refuses = bool(_error(lambda: trivet.remember("Too late.")))
    told = {"held": was_home and refuses and before == after > MEMORIES, "memories": after}
    new.close()
    server.close()
    return told


@contextmanager
def _tenant(old: PostgresServer) -> Iterator[tuple[str, Trivet]]:
    url = old.database()
    with Trivet.open(url, tenant="acme", background=False, **USUAL) as trivet:
        trivet.remember_many(
            [{"content": note(random.Random(number))} for number in range(MEMORIES)]
        )
        trivet.remember("One more.")
        yield url, trivet


def _count(url: str) -> int:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('trivet.tenant', 'acme', true)")
        row = connection.execute("SELECT count(*) FROM memory").fetchone()
        return int(row[0]) if row else 0


def _error(act: Callable[[], Any]) -> str:
    try:
        act()
    except TrivetError as error:
        return f"{type(error).__name__}: {_FOLDER.sub('HOST', str(error))}"
    return ""


def _quiet(stage: str, detail: str) -> None:
    """Says nothing."""


if __name__ == "__main__":
    sys.exit(main())
