"""A real PgBouncer in transaction pooling mode, if it is installed."""

from __future__ import annotations

import shutil
import subprocess

import psycopg

from support.postgres_server import AS_NOBODY, PostgresServer, folder_for_nobody
from support.waiting import LIMIT_SECONDS

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")

_CONFIGURATION = """
[databases]
* = host={server} pool_size=2
[pgbouncer]
unix_socket_dir = {folder}
listen_addr =
listen_port = 6432
auth_type = trust
auth_file = {folder}/users
logfile = {folder}/log
pool_mode = transaction
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
"""


class Pooler:
    def __init__(self, server: PostgresServer) -> None:
        assert PROGRAM is not None
        self._folder = folder_for_nobody("trivet-pooler-")
        configuration = self._folder / "pgbouncer.ini"
        configuration.write_text(_CONFIGURATION.format(server=server.folder, folder=self._folder))
        (self._folder / "users").write_text('"trivet" ""\n')
        silent = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [*AS_NOBODY, PROGRAM, "-q", str(configuration)],
            stdin=silent,
            stdout=silent,
            stderr=silent,
        )

    def url(self, direct: str) -> str:
        """Return the address of the same database through the pooler, once the pooler answers."""
        parts = psycopg.conninfo.conninfo_to_dict(direct)
        found = f"postgresql://{parts['user']}@/{parts['dbname']}?host={self._folder}&port=6432"
        while self._process.poll() is None:
            try:
                psycopg.connect(found).close()
            except psycopg.OperationalError as error:
                if "No such file" not in str(error):
                    raise
            else:
                return found
        raise AssertionError((self._folder / "log").read_text())

    def remove(self) -> None:
        self._process.terminate()
        self._process.wait(LIMIT_SECONDS)
        shutil.rmtree(self._folder)
