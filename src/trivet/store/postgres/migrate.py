"""Schema migration by one process at a time."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import psycopg

from trivet.errors import StoreError
from trivet.store.postgres.connections import owner_of_tables
from trivet.store.sql_files import MigrationStep, latest_version, steps

FOLDER = Path(__file__).parent
SCHEMA_VERSION = latest_version(FOLDER)
LEAST_SERVER = 150000
LEAST_VECTOR = (0, 8)
# Advisory lock: "trivet" in ASCII.
MIGRATING = 0x747269766574
# Seconds to wait: another process may be building an index for minutes.
PATIENCE = 600.0
PAUSE = 0.2

_TABLES = (
    "SELECT to_regclass('schema_version') IS NOT NULL, to_regclass('alembic_version') IS NOT NULL"
)
# An older Trivet kept the version in Alembic's table. That table stays until the next step, so that
# the older one can still open the database.
_RECORD = """
CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL);
DELETE FROM schema_version;
INSERT INTO schema_version VALUES ({version});
DROP TABLE IF EXISTS alembic_version
"""
_BROKEN = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid"
_INDEX = re.compile(r"CREATE INDEX CONCURRENTLY IF NOT EXISTS (\w+)")


def migrate(url: str, name: str, to: int = SCHEMA_VERSION) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        if _version(connection) != to:
            _wait_for_turn(connection, name)
            version = _version(connection)  # another process may have migrated meanwhile
            if version != to:
                _check_newer(version, name, to)
                _check_role(connection, name, version, to)
                _check_requirements(connection, name)
                _upgrade(connection, name, version, to)
    return to


def _version(connection: psycopg.Connection[Any]) -> int:
    ours, alembic = connection.execute(_TABLES).fetchone() or (False, False)
    if ours:
        row = connection.execute("SELECT version FROM schema_version").fetchone()
    else:
        row = (
            connection.execute("SELECT version_num FROM alembic_version").fetchone()
            if alembic
            else None
        )
    return int(row[0]) if row else 0


def _wait_for_turn(connection: psycopg.Connection[Any], name: str) -> None:
    """Poll: a session waiting inside a statement would block a concurrent index build."""
    last = time.monotonic() + PATIENCE
    while not _take_turn(connection):
        if time.monotonic() > last:
            raise StoreError(
                f"Another process has been migrating {name} for over {PATIENCE:g} s. "
                "Nothing was changed; check that process."
            )
        time.sleep(PAUSE)


def _take_turn(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (MIGRATING,)).fetchone()
    return bool(row and row[0])


def _check_newer(version: int, name: str, to: int) -> None:
    if version > to:
        raise StoreError(
            f"{name} was written by a newer Trivet (schema {version:04}, this one knows {to:04}). "
            "Nothing was changed; upgrade Trivet to open it."
        )


def _check_role(connection: psycopg.Connection[Any], name: str, version: int, to: int) -> None:
    owned = owner_of_tables(connection)
    row = connection.execute(
        "SELECT current_user, has_schema_privilege(current_schema(), 'CREATE')"
    ).fetchone()
    role, may_make = row or ("", False)
    if owned is None and not may_make:
        raise StoreError(
            f"{name} has no Trivet tables yet, and the role {role} may not create any. Run "
            "`trivet migrate postgresql://OWNER@HOST/DATABASE` with the role that will own them."
        )
    if owned is not None and not owned[1]:
        raise StoreError(
            f"{name} has schema {version:04}, this Trivet needs {to:04}, and the tables belong to "
            f"the role {owned[0]}. Nothing was changed; run "
            f"`trivet migrate postgresql://{owned[0]}@HOST/DATABASE`, then start this again."
        )


def _check_requirements(connection: psycopg.Connection[Any], name: str) -> None:
    if connection.info.server_version < LEAST_SERVER:
        raise StoreError(
            f"{name} is PostgreSQL {connection.info.server_version // 10000}. "
            "Trivet needs 15 or newer."
        )
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error as error:
        raise StoreError(
            f"{name} has no pgvector, and it cannot be added: {error}. "
            "Install pgvector 0.8 or newer and have an administrator run CREATE EXTENSION vector."
        ) from error
    row = connection.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).fetchone()
    found = str(row[0]) if row else "0"
    if tuple(int(part) for part in found.split(".")[:2]) < LEAST_VECTOR:
        raise StoreError(
            f"{name} has pgvector {found}. Trivet needs 0.8 or newer; "
            "run ALTER EXTENSION vector UPDATE."
        )


def _upgrade(connection: psycopg.Connection[Any], name: str, version: int, to: int) -> None:
    try:
        for step in steps(FOLDER, version, to):
            _take(connection, step)
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        began = f"{version:04}" if version else "none"
        raise StoreError(
            f"The migration of {name} from schema {began} to {to:04} failed: {reason}. "
            "Earlier steps are kept, and the failed one changed nothing. "
            "Fix the cause and open the store again."
        ) from error


def _take(connection: psycopg.Connection[Any], step: MigrationStep) -> None:
    if not step.in_transaction:
        for statement in step.sql.split(";\n"):
            _build_index(connection, statement)
    with connection.transaction():
        if step.in_transaction:
            connection.execute(step.sql)
        connection.execute(_RECORD.format(version=step.number))


def _build_index(connection: psycopg.Connection[Any], statement: str) -> None:
    found = _INDEX.search(statement)
    if found is None:
        return
    if connection.execute(_BROKEN, (found[1],)).fetchone():
        connection.execute(f"DROP INDEX CONCURRENTLY {found[1]}")
    connection.execute(statement)
