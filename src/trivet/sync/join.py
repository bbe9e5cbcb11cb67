"""A store begins to follow a server, or stops."""

from __future__ import annotations

import uuid

from trivet.errors import Conflict, InvalidInput
from trivet.memory.engine import Engine
from trivet.settings.address import is_file
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.feed import SYNC
from trivet.sync.core import other_id
from trivet.sync.laptop import rename
from trivet.sync.messages import Place
from trivet.sync.state import LaptopState, load, save
from trivet.types import LOCAL

# Ids that were made from names, such as a vault's files: another user may have made the same.
_FROM_NAMES = 5


def join(engine: Engine, url: str, user: str, sensitive: bool = False) -> LaptopState:
    """Everything that is here becomes the user's, and is sent at the next exchange. Nothing is lost if it fails."""
    if not is_file(engine.settings.path):
        raise InvalidInput("Only a store in a file can follow a server. Give its path with --path.")
    with engine.store.feed.transaction() as connection:
        known = load(connection)
        if known is not None and (known.url, known.user) != (url, user):
            raise Conflict(f"This store follows {known.url} as {known.user} already. Run `trivet sync leave` first.")
        if known is not None:
            return known
        if engine.store.feed.state(connection) is not None:
            raise Conflict("Laptops follow this store, so it cannot follow another one.")
        _rename_made_ids(engine, connection, user)
        state = LaptopState(url=url, user=user, place=Place(sensitive=sensitive))
        save(connection, state)
    return state


def _rename_made_ids(engine: Engine, connection: WriteTransaction, user: str) -> None:
    for (id,) in connection.execute(connection.sql("replica")["ids"]).fetchall():
        row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
        if row["owner"] == LOCAL and uuid.UUID(id).version == _FROM_NAMES:
            rename(engine, connection, id, other_id(id, user))


def leave(engine: Engine) -> None:
    """The store follows nobody any more. What it holds stays, others' memories go."""
    with engine.store.feed.transaction() as connection:
        sql = connection.sql("replica")
        for row in connection.execute(sql["all"]).fetchall():
            if row["access"] != "own":
                engine.store.all_memories.purge(row["id"])
        connection.execute("DELETE FROM meta WHERE name = :name", {"name": SYNC})
        for table in ("replica", "replica_link", "replica_share", "outbox", "carried", "tombstone"):
            connection.execute(f"DELETE FROM {table}")
