"""How PostgreSQL spells what the shared SQL leaves open.

What an address and a role must be before anything is asked of them.

PostgreSQL's errors in our words: what was wrong, whether anything was written, what to do.

Connections to one PostgreSQL server, made as they are needed and kept, and the rows they give.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from trivet.errors import InvalidInput, Moved, Moving, StoreError
from trivet.store.sql_files import Dialect, Queries

if TYPE_CHECKING:
    pass


_name = re.compile(r"(?<![:\w]):([a-z_]+)")


def _for_psycopg(sql: str) -> str:
    return _name.sub(r"%(\1)s", sql.replace("%", "%%"))


# Lists travel as JSON; as_keys and as_texts, made by the first migration, turn them into arrays. Every key of a table
# begins with the tenant. A queue's rows that another process has locked are left to that process. The time of a queue
# is that of the server, which all its clients share.
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
    return (
        f"postgresql://{user}@{host or 'localhost'}{port and f':{port}'}/{parts.get('dbname', '')}"
    )


def role_bypassing_row_security(connection: psycopg.Connection[Any]) -> str | None:
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


# The server goes away, comes up, or cannot be reached: what was asked may be asked again.
_AWAY = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    psycopg.InterfaceError,
)


def is_away(error: psycopg.Error) -> bool:
    """Whether the connection is lost, as opposed to a statement that was refused."""
    return isinstance(error, _AWAY) or (
        isinstance(error, psycopg.OperationalError) and error.sqlstate is None
    )


def is_damage(error: psycopg.Error) -> bool:
    """Whether the server found a row or a page of an index that it cannot read."""
    return isinstance(
        error, (errors.DataCorrupted, errors.IndexCorrupted, errors.CharacterNotInRepertoire)
    )


def refusal(error: psycopg.Error) -> type[StoreError] | None:
    """What trivet_enter refuses: Moving while the tenant is frozen, Moved where it is not, or not yet, at home."""
    return {"TR001": Moved, "TR002": Moving, "TR003": Moved}.get(error.sqlstate or "")


def reason(error: psycopg.Error) -> str:
    """What PostgreSQL says in its first line. Of a refused value only the kind of the error: it quotes the value."""
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
        return f"The tenant lives at {home} now, no more in {name}. Nothing was written; ask there."
    if error.sqlstate == "TR002":
        return f"The tenant is just being moved to {home}. Nothing was written; try again in some seconds."
    if error.sqlstate == "TR003":
        return f"The tenant is being moved to {name} and still lives at {home}. Nothing was written; ask there."
    if isinstance(error, errors.LockNotAvailable):
        return f"Others have been writing to {name} for over {waited:g} s. Nothing was written; try again."
    if is_away(error):
        text = text.rpartition(" failed: ")[
            2
        ]  # the driver names the host before, which is not for users
        return f"The connection to {name} is lost ({text}). Nothing was written; see that it runs and try again."
    if isinstance(error, errors.DiskFull):
        return f"The disk of {name} is full. Nothing was written; make room and try again."
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return f"{name} is a standby, which only reads. Nothing was written; name the primary."
    if isinstance(error, (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)):
        return f"A pooler stands before {name} ({text}). Nothing was written; set postgres_pooler to yes."
    if isinstance(error, errors.InsufficientPrivilege):
        return f"The role that opened {name} may not do this ({text}). Nothing was written; grant it the tables."
    if isinstance(error, errors.UndefinedTable):
        return f"{name} has no Trivet tables. Open it with a role that may make them, or run the migrations."
    return f"PostgreSQL refused: {text} ({name}). Nothing was written."


def unknown_outcome(name: str) -> str:
    return (
        f"The connection to {name} was lost while a write was being committed, so it may or may not be stored. "
        "Repeat it: a memory has one id, and storing it again changes nothing."
    )


# A recall asks the same as the one before.
PREPARED_AFTER = 2
# A store that is filled grows by a few thousand memories meanwhile, which a plan for none still reads in milliseconds.
PLANS_KEPT_SECONDS = 30.0


class Row(tuple[Any, ...]):
    """Its values are found by position and by name."""

    places: ClassVar[dict[str, int]] = {}

    def __getitem__(self, name: Any) -> Any:
        return tuple.__getitem__(self, self.places[name] if isinstance(name, str) else name)


def row_factory(cursor: psycopg.Cursor[Row]) -> Callable[[Sequence[Any]], Row]:
    return _row_class(tuple(column.name for column in cursor.description or ()))


@cache
def _row_class(names: tuple[str, ...]) -> type[Row]:
    return type("Row", (Row,), {"places": {name: place for place, name in enumerate(names)}})


class Connection(psycopg.Connection[Row]):
    """One of the pool, which knows since when it has kept the plans of its statements."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._planned_at = time.monotonic()

    def forget_old_plans(self) -> None:
        """So that statements are planned for tables as large as they are. A plan made while a table was empty reads all
        of it for each row, and the server keeps it until it happens to look at the table."""
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
        # Behind a transaction pooler the next statement may run on another connection, where it is not prepared.
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
