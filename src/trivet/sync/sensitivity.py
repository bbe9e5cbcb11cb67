"""Whether sensitive memories travel: only while laptop and server both allow it. What waited is withdrawn at once."""

from __future__ import annotations

import msgspec

from trivet.store.relational.database import WriteTransaction
from trivet.sync import core
from trivet.sync.outbox import pending_of
from trivet.sync.preparing import prepare_memories
from trivet.sync.sending import told
from trivet.sync.state import LaptopState, save


def agreed(connection: WriteTransaction, state: LaptopState, allowed: bool) -> LaptopState:
    """From now on; what waits to be sent of memories that are or were sensitive is put together anew."""
    if state.place.sensitive == allowed:
        return state
    state = msgspec.structs.replace(state, place=msgspec.structs.replace(state.place, sensitive=allowed))
    save(connection, state)
    sql = connection.sql("replica")
    keys = [row[0] for row in connection.execute(sql["once_sensitive"]).fetchall()]
    for key in keys:
        connection.execute(sql["withdraw"], {"key": key})
    for one in map(pending_of, connection.execute(sql["heals"]).fetchall()):
        replica = connection.execute(sql["by_id"], {"id": one.id}).fetchone()
        if replica is not None and core.is_withheld(told(connection, state, replica), allowed):
            connection.execute(sql["dequeue"], {"op": one.op})
    prepare_memories(connection, keys, state.user, allowed)
    return state
