"""Brings the schema up to date. Only one process does at a time, and a step that fails stops it and says so."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors

from trivet.errors import StoreError

HEAD = "0008"
LEAST_SERVER = 150000
LEAST_VECTOR = (0, 8)
# "trivet" as a number: the advisory lock of whoever migrates.
MIGRATING = 0x747269766574
# Another process may be building an index for minutes.
PATIENCE = 600.0
PAUSE = 0.2

_MIGRATIONS = Path(__file__).with_name("migrations")


def migrate(url: str, name: str, to: str = HEAD) -> int:
    """The version of the schema after it."""
    with psycopg.connect(url, autocommit=True) as connection:
        if _version(connection) != to:
            _wait_for_turn(connection, name)
            version = _version(connection)  # the one we waited for may have done it
            if version != to:
                _check_newer(version, name, to)
                _check_ground(connection, name)
                _upgrade(url, name, version, to)
    return int(to)


def _version(connection: psycopg.Connection[Any]) -> str | None:
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except errors.UndefinedTable:
        return None
    return str(row[0]) if row else None


def _wait_for_turn(connection: psycopg.Connection[Any], name: str) -> None:
    """Asks again and again: a session that waits inside a statement would hold up an index built concurrently."""
    last = time.monotonic() + PATIENCE
    while not _take_turn(connection):
        if time.monotonic() > last:
            raise StoreError(f"Another process has been migrating {name} for over {PATIENCE:g} s. Look what it does.")
        time.sleep(PAUSE)


def _take_turn(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (MIGRATING,)).fetchone()
    return bool(row and row[0])


def _check_newer(version: str | None, name: str, to: str) -> None:
    if version is not None and version > to:
        raise StoreError(
            f"{name} was written by a newer Trivet (schema {version}, this one knows {to}). "
            "Nothing was changed; upgrade Trivet to open it."
        )


def _check_ground(connection: psycopg.Connection[Any], name: str) -> None:
    if connection.info.server_version < LEAST_SERVER:
        raise StoreError(f"{name} is PostgreSQL {connection.info.server_version // 10000}; Trivet needs 15 or newer.")
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error as error:
        raise StoreError(
            f"{name} has no pgvector, and it cannot be added: {error}. "
            "Install pgvector 0.8 or newer and let an administrator run CREATE EXTENSION vector."
        ) from error
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    found = str(row[0]) if row else "0"
    if tuple(int(part) for part in found.split(".")[:2]) < LEAST_VECTOR:
        raise StoreError(f"{name} has pgvector {found}; Trivet needs 0.8 or newer: ALTER EXTENSION vector UPDATE.")


def _upgrade(url: str, name: str, version: str | None, to: str) -> None:
    # Here and not above: a database that is up to date, which is nearly always, needs neither.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, to)
    except (SQLAlchemyError, psycopg.Error) as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise StoreError(
            f"The migration of {name} from schema {version or 'none'} to {to} failed: {reason}. The steps before it "
            "are kept and the failed one left nothing; see to the cause and open the store again."
        ) from error
    finally:
        engine.dispose()
