"""What an address and a role must be before anything is asked of them."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from trivet.errors import InvalidInput

_OUTSIDE = "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
_OWNER = """SELECT tableowner, pg_has_role(tableowner, 'MEMBER') FROM pg_tables
            WHERE schemaname = current_schema() AND tablename = 'memory'"""
_PROCESS = "SELECT pg_backend_pid()"


def name_of(url: str) -> str:
    """Without the password. A piece of one that was not written as an address needs it must not pass as a host."""
    try:
        parts = {name: str(value or "") for name, value in conninfo_to_dict(url).items()}
        readable = parts.get("port", "").replace(",", "").isdigit() or not parts.get("port")
    except psycopg.Error:
        readable = False
    if not readable or "@" in parts.get("dbname", "") + parts.get("host", ""):
        raise InvalidInput(
            "The address of the PostgreSQL database cannot be read. It looks like postgresql://user@host:5432/name; "
            "in a password write @ as %40, / as %2F, : as %3A and % as %25, or keep it in ~/.pgpass."
        )
    return f"postgresql://{parts.get('user', '')}@{parts.get('host') or 'localhost'}/{parts.get('dbname', '')}"


def address_of(url: str) -> str:
    """Where the database is, for people and for other servers: without a password or other options."""
    parts = {name: str(value or "") for name, value in conninfo_to_dict(url).items()}
    user, host, port = parts.get("user", ""), parts.get("host", ""), parts.get("port", "")
    if host.startswith("/"):
        options = f"?host={host}{port and f'&port={port}'}"
        return f"postgresql://{user}@/{parts.get('dbname', '')}{options}"
    return f"postgresql://{user}@{host or 'localhost'}{port and f':{port}'}/{parts.get('dbname', '')}"


def role_above_the_rules(connection: psycopg.Connection[Any]) -> str | None:
    """Row-level security does not bind a superuser: with one, a mistake of ours would show a tenant another's."""
    row = connection.execute(_OUTSIDE).fetchone()
    return str(row[0]) if row else None


def owner_of_tables(connection: psycopg.Connection[Any]) -> tuple[str, bool] | None:
    """The role that owns the tables, and whether the one that is connected can act as it; None without tables."""
    row = connection.execute(_OWNER).fetchone()
    return (str(row[0]), bool(row[1])) if row else None


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether a pooler stands between: it gives the connection a process number of its own making."""
    row = connection.execute(_PROCESS).fetchone()
    return row is None or row[0] != connection.info.backend_pid
