"""Where a laptop's store stands: whom it follows, as whom, and how far it has read. One small value in the store."""

from __future__ import annotations

import msgspec

from trivet.elapsed import Look
from trivet.store.relational.database import Connection, WriteTransaction
from trivet.store.relational.feed import SYNC
from trivet.sync.messages import Place
from trivet.types import LOCAL


class LaptopState(msgspec.Struct, frozen=True, kw_only=True):
    """`change` is how far the record of changes is prepared; `full`: a full pull is under way.

    `contact` is when the server last answered, and `hidden` whether others' memories are hidden since. `away` are the
    seconds that passed since as far as the laptop has `looked` at its clock.
    """

    role: str = "laptop"
    url: str
    user: str
    place: Place = Place()
    full: bool = False
    change: int = 0
    contact: str = ""
    hidden: bool = False
    away: float = 0.0
    looked: Look | None = None

    @property
    def standing(self) -> Place:
        """From where the laptop asks."""
        return msgspec.structs.replace(self.place, full=self.full)


# A server may have a user by the name that every laptop uses for its own owner.
_LOCAL_THERE = f"{LOCAL}@server"


def owner_here(state: LaptopState, owner: str) -> str:
    """Whose a memory is in the laptop's store."""
    if owner == state.user:
        return LOCAL
    return _LOCAL_THERE if owner == LOCAL else owner


def owner_there(state: LaptopState, owner: str) -> str:
    """Whose it is on the server."""
    if owner == LOCAL:
        return state.user
    return LOCAL if owner == _LOCAL_THERE else owner


class _Role(msgspec.Struct, frozen=True):
    role: str


def load(connection: Connection) -> LaptopState | None:
    """None in a store that follows nobody."""
    row = connection.execute(connection.sql("maintenance")["get_meta"], {"name": SYNC}).fetchone()
    if row is None or msgspec.json.decode(row[0], type=_Role).role != "laptop":
        return None
    return msgspec.json.decode(row[0], type=LaptopState)


def save(connection: WriteTransaction, state: LaptopState) -> None:
    value = msgspec.json.encode(state).decode()
    connection.execute(connection.sql("maintenance")["set_meta"], {"name": SYNC, "value": value})
