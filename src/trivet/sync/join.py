"""A store begins to follow a server, or stops."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.errors import Conflict, InvalidInput
from trivet.memory.engine import Engine
from trivet.settings.address import is_file
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.feed import SYNC
from trivet.sync.core import is_made_of_a_name, other_id
from trivet.sync.messages import Place
from trivet.sync.preparing import prepare
from trivet.sync.removing import Removing
from trivet.sync.renaming import rename
from trivet.sync.state import LaptopState, load, save
from trivet.types import LOCAL


def join(
    engine: Engine, url: str, user: str, sensitive: bool = False, scopes: Sequence[str] | None = None
) -> LaptopState:
    """Everything that is here becomes the user's, and is sent at the next exchange. Nothing is lost if it fails.

    With `scopes` the store then holds what is in these. A store that joined before holds others from now on; none
    named, it holds everything again.
    """
    if not is_file(engine.settings.path):
        raise InvalidInput("Only a store in a file can follow a server. Give its path with --path.")
    with engine.store.feed.transaction() as connection:
        known = load(connection)
        if known is not None and (known.url, known.user) != (url, user):
            raise Conflict(f"This store follows {known.url} as {known.user} already. Run `trivet sync leave` first.")
        if known is not None:
            return known if scopes is None else _held_from_now_on(connection, known, scopes)
        if engine.store.feed.state(connection) is not None:
            raise Conflict("Laptops follow this store, so it cannot follow another one.")
        _rename_made_ids(engine, connection, user)
        place = Place(sensitive=sensitive, scopes=tuple(sorted(set(scopes or ()))))
        state = LaptopState(url=url, user=user, place=place)
        save(connection, state)
    return state


def _held_from_now_on(connection: WriteTransaction, known: LaptopState, scopes: Sequence[str]) -> LaptopState:
    """Everything is read again: what is outside is told, and what was outside comes."""
    wanted = tuple(sorted(set(scopes)))
    if wanted == known.place.scopes:
        return known
    connection.execute(connection.sql("replica")["doubt_all"])
    place = msgspec.structs.replace(known.place, scopes=wanted, seq=0)
    state = msgspec.structs.replace(known, place=place, full=known.place.epoch is not None)
    save(connection, state)
    return state


def _rename_made_ids(engine: Engine, connection: WriteTransaction, user: str) -> None:
    for (id,) in connection.execute(connection.sql("replica")["ids"]).fetchall():
        row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
        if row["owner"] == LOCAL and is_made_of_a_name(id):
            rename(engine, connection, id, other_id(id, user))


class _Leaving(Removing):
    def let_others_go(self) -> None:
        for row in self._connection.execute(self._sql["all"]).fetchall():
            if row["access"] != "own":
                self._remove(row["id"], f"This store no longer follows {self._state.url}.")


def leave(engine: Engine) -> None:
    """The store follows nobody any more. What it holds stays, others' memories go; what waited for these is kept."""
    with engine.store.feed.transaction() as connection:
        sql, state = connection.sql("replica"), load(connection)
        if state is not None:
            _Leaving(engine, connection, prepare(connection, state, state.place.sensitive)).let_others_go()
        connection.execute("DELETE FROM meta WHERE name = :name", {"name": SYNC})
        connection.execute(sql["untold"])
        for table in ("replica", "replica_link", "replica_share", "outbox", "carried", "tombstone"):
            connection.execute(f"DELETE FROM {table}")
