"""PostgreSQL's errors in our words: what was wrong, whether anything was written, what to do."""

from __future__ import annotations

import psycopg
from psycopg import errors

from trivet.errors import Moved, Moving, StoreError

# The server goes away, comes up, or cannot be reached: what was asked may be asked again.
_AWAY = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, psycopg.InterfaceError)


def is_away(error: psycopg.Error) -> bool:
    """Whether the connection is lost, as opposed to a statement that was refused."""
    return isinstance(error, _AWAY) or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None)


def is_damage(error: psycopg.Error) -> bool:
    """Whether the server found a row or a page of an index that it cannot read."""
    return isinstance(error, (errors.DataCorrupted, errors.IndexCorrupted, errors.CharacterNotInRepertoire))


def refusal(error: psycopg.Error) -> type[StoreError] | None:
    """What trivet_enter refuses: Moving while the tenant is frozen, Moved where it is not, or not yet, at home."""
    return {"TR001": Moved, "TR002": Moving, "TR003": Moved}.get(error.sqlstate or "")


def reason(error: psycopg.Error) -> str:
    """What PostgreSQL says in its first line. Of a refused value only the kind of the error: it quotes the value."""
    first = str(error).strip().partition("\n")[0]
    if not first or isinstance(error, psycopg.DataError | psycopg.IntegrityError | errors.RaiseException):
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
        text = text.rpartition(" failed: ")[2]  # the driver names the host before, which is not for users
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
