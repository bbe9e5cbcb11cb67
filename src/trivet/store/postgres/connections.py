"""Connections to a PostgreSQL server: dialect, address and role checks, errors, and rows."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from trivet.errors import InvalidInput, Moved, Moving, StoreError
from trivet.store.sql_files import Dialect, Queries

_name = re.compile(r"(?<![:\w]):([a-z_]+)")


def _for_psycopg(sql: str) -> str:
    return _name.sub(r"%(\1)s", sql.replace("%", "%%"))


# Lists are passed as JSON; as_keys and as_texts turn them into arrays. Queue times are the
# server's, so that all clients agree.
DIALECT = Dialect(
    folder=Path(__file__).parent,
    spellings={
        "in_keys": "= ANY (as_keys(:{}))",
        "in_texts": "= ANY (as_texts(:{}))",
        "not_in_keys": "!= ALL (as_keys(:{}))",
        "each_key": "unnest(as_keys(:{})) WITH ORDINALITY AS wanted (value, key)",
        "each_text": "unnest(as_texts(:{})) WITH ORDINALITY AS wanted (value, key)",
        "position": "strpos",
        "epoch": "extract(epoch FROM statement_timestamp())::float8",
        "skip_locked": "FOR UPDATE OF {} SKIP LOCKED",
        "tenant": "tenant, ",
    },
    translate=_for_psycopg,
)
QUERIES = Queries(DIALECT)


def may_retry(error: psycopg.Error, last: float) -> bool:
    return is_away(error) and time.monotonic() < last


_OUTSIDE = (
    "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
)
_OWNER = """SELECT tableowner, pg_has_role(tableowner, 'MEMBER') FROM pg_tables
            WHERE schemaname = current_schema() AND tablename = 'memory'"""
_PROCESS = "SELECT pg_backend_pid()"


def name_of(url: str) -> str:
    """Return the address without the password.

    Refuse a URL that does not parse: part of an unescaped password could pass as the host.
    """
    try:
        parts = {name: str(value or "") for name, value in conninfo_to_dict(url).items()}
        readable = parts.get("port", "").replace(",", "").isdigit() or not parts.get("port")
    except psycopg.Error:
        readable = False
    if not readable or "@" in parts.get("dbname", "") + parts.get("host", ""):
        raise InvalidInput(
            "The address of the PostgreSQL database cannot be read. Write it as "
            "postgresql://user@host:5432/name; in a password write @ as %40, / as %2F, : as %3A "
            "and % as %25, or keep it in ~/.pgpass."
        )
    user, host = parts.get("user", ""), parts.get("host") or "localhost"
    return f"postgresql://{user}@{host}/{parts.get('dbname', '')}"


def address_of(url: str) -> str:
    parts = {name: str(value or "") for name, value in conninfo_to_dict(url).items()}
    user, host, port = parts.get("user", ""), parts.get("host", ""), parts.get("port", "")
    if host.startswith("/"):
        options = f"?host={host}{port and f'&port={port}'}"
        return f"postgresql://{user}@/{parts.get('dbname', '')}{options}"
    return (
        f"postgresql://{user}@{host or 'localhost'}{port and f':{port}'}/{parts.get('dbname', '')}"
    )


def role_bypassing_row_security(connection: psycopg.Connection[Any]) -> str | None:
    """Return the role if row-level security does not bind it."""
    row = connection.execute(_OUTSIDE).fetchone()
    return str(row[0]) if row else None


def owner_of_tables(connection: psycopg.Connection[Any]) -> tuple[str, bool] | None:
    """Return the owner and whether the connected role can act as it, or None."""
    row = connection.execute(_OWNER).fetchone()
    return (str(row[0]), bool(row[1])) if row else None


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Detect a pooler by the process number that it invents."""
    row = connection.execute(_PROCESS).fetchone()
    return row is None or row[0] != connection.info.backend_pid


# The server is stopping, starting or unreachable; a retry may succeed.
_AWAY = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    psycopg.InterfaceError,
)


def is_away(error: psycopg.Error) -> bool:
    return isinstance(error, _AWAY) or (
        isinstance(error, psycopg.OperationalError) and error.sqlstate is None
    )


def is_damage(error: psycopg.Error) -> bool:
    return isinstance(
        error, (errors.DataCorrupted, errors.IndexCorrupted, errors.CharacterNotInRepertoire)
    )


def refusal(error: psycopg.Error) -> type[StoreError] | None:
    """Return the error for a tenant that trivet_enter refused: it is frozen or lives elsewhere."""
    return {"TR001": Moved, "TR002": Moving, "TR003": Moved}.get(error.sqlstate or "")


def reason(error: psycopg.Error) -> str:
    """Return PostgreSQL's first line, or the error's kind if it quotes a value."""
    first = str(error).strip().partition("\n")[0]
    if not first or isinstance(
        error, psycopg.DataError | psycopg.IntegrityError | errors.RaiseException
    ):
        return " ".join(filter(None, (type(error).__name__, error.sqlstate)))
    return first


def explain(error: psycopg.Error, name: str, waited: float) -> str:
    text = reason(error)
    home = error.diag.message_primary
    if error.sqlstate == "TR001":
        return (
            f"The tenant lives at {home} now, no longer in {name}. "
            "Nothing was written; use that address."
        )
    if error.sqlstate == "TR002":
        return (
            f"The tenant is being moved to {home}. Nothing was written; try again in a few seconds."
        )
    if error.sqlstate == "TR003":
        return (
            f"The tenant is being moved to {name} and still lives at {home}. "
            "Nothing was written; use that address."
        )
    if isinstance(error, errors.LockNotAvailable):
        return (
            f"Others have been writing to {name} for over {waited:g} s. "
            "Nothing was written; try again."
        )
    if is_away(error):
        # The part before names the host, which users must not see.
        text = text.rpartition(" failed: ")[2]
        return (
            f"The connection to {name} is lost ({text}). "
            "Nothing was written; check that it runs and try again."
        )
    if isinstance(error, errors.DiskFull):
        return f"The disk of {name} is full. Nothing was written; make room and try again."
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return f"{name} is a read-only standby. Nothing was written; use the primary's address."
    if isinstance(error, (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)):
        return (
            f"There is a pooler in front of {name} ({text}). "
            "Nothing was written; set postgres_pooler to yes."
        )
    if isinstance(error, errors.InsufficientPrivilege):
        return (
            f"The role that opened {name} may not do this ({text}). "
            "Nothing was written; grant it access to the tables."
        )
    if isinstance(error, errors.UndefinedTable):
        return (
            f"{name} has no Trivet tables. "
            "Open it with a role that may create them, or run `trivet migrate`."
        )
    return f"PostgreSQL refused: {text} ({name}). Nothing was written."


def unknown_outcome(name: str) -> str:
    return (
        f"The connection to {name} was lost while a write was being committed, so it may or may "
        "not be stored. Repeat it: a memory has one id, and storing it again changes nothing."
    )


# Prepare a statement at its second use: recalls repeat their queries.
PREPARED_AFTER = 2
# How long to keep a plan: one made for an empty table still reads what is added meanwhile in
# milliseconds.
PLANS_KEPT_SECONDS = 30.0


class Row(tuple[Any, ...]):
    places: ClassVar[dict[str, int]] = {}

    def __getitem__(self, name: Any) -> Any:
        return tuple.__getitem__(self, self.places[name] if isinstance(name, str) else name)


def row_factory(cursor: psycopg.Cursor[Row]) -> Callable[[Sequence[Any]], Row]:
    return _row_class(tuple(column.name for column in cursor.description or ()))


@cache
def _row_class(names: tuple[str, ...]) -> type[Row]:
    return type("Row", (Row,), {"places": {name: place for place, name in enumerate(names)}})


class Connection(psycopg.Connection[Row]):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._planned_at = time.monotonic()

    def forget_old_plans(self) -> None:
        """Drop old plans: one made for an empty table scans a grown one for each row."""
        if time.monotonic() - self._planned_at > PLANS_KEPT_SECONDS:
            self.execute("DISCARD PLANS", prepare=False)
            self._planned_at = time.monotonic()


Pool = ConnectionPool[Connection]


def make_pool(
    url: str,
    prepares: bool,
    most: int,
    timeout: float,
    configure: Callable[[Connection], None] | None = None,
) -> Pool:
    return ConnectionPool(
        url,
        connection_class=Connection,
        # A transaction pooler may run the next statement on another connection.
        kwargs={
            "autocommit": True,
            "prepare_threshold": PREPARED_AFTER if prepares else None,
            "row_factory": row_factory,
        },
        configure=configure,
        min_size=0,
        max_size=most,
        timeout=timeout,
        reconnect_timeout=timeout,
        open=True,
    )
