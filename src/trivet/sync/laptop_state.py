"""A laptop's sync state and outbox, kept in its store."""

from __future__ import annotations

from collections.abc import Iterable, Set

import msgspec

from trivet.common.clock import ClockReading, now
from trivet.common.ids import new_id
from trivet.store.records import LinkRecord, ShareRecord
from trivet.store.relational.database import Connection, Row, WriteTransaction
from trivet.store.relational.tables.sync_feed import SYNC
from trivet.sync.messages import OpKind, Place
from trivet.types import LOCAL, Permission


class LaptopState(msgspec.Struct, frozen=True, kw_only=True):
    """The server a store follows and how far the two are synced.

    `change` is the last local change in the outbox. Others' memories are `hidden` if the last
    `contact` is long ago; `away` counts the seconds since, up to the clock reading `looked`.
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
    looked: ClockReading | None = None

    @property
    def standing(self) -> Place:
        return msgspec.structs.replace(self.place, full=self.full)


# On a laptop LOCAL is its user, so the server's user of that name is renamed.
_LOCAL_ON_SERVER = f"{LOCAL}@server"


def local_owner(state: LaptopState, owner: str) -> str:
    if owner == state.user:
        return LOCAL
    return _LOCAL_ON_SERVER if owner == LOCAL else owner


def server_owner(state: LaptopState, owner: str) -> str:
    if owner == LOCAL:
        return state.user
    return LOCAL if owner == _LOCAL_ON_SERVER else owner


class _Role(msgspec.Struct, frozen=True):
    role: str


def load(connection: Connection) -> LaptopState | None:
    """Return the state, or None if the store follows no server."""
    row = connection.execute(connection.sql("maintenance")["get_meta"], {"name": SYNC}).fetchone()
    if row is None or msgspec.json.decode(row[0], type=_Role).role != "laptop":
        return None
    return msgspec.json.decode(row[0], type=LaptopState)


def save(connection: WriteTransaction, state: LaptopState) -> None:
    value = msgspec.json.encode(state).decode()
    connection.execute(connection.sql("maintenance")["set_meta"], {"name": SYNC, "value": value})


Ends = tuple[str, str, str]
Shares = dict[tuple[str, str], Permission]  # keyed by tag (empty for a memory) and grantee


class Detail(msgspec.Struct, frozen=True, omit_defaults=True):
    """The subject of an operation, without any text of a memory."""

    names: tuple[str, ...] = ()  # the fields that an edit changes
    was: dict[str, str] = {}  # hashes of their previous values
    share: ShareRecord | None = None
    link: LinkRecord | None = None
    revs: tuple[str, ...] = ()


class Pending(msgspec.Struct, frozen=True):
    place: int
    op: str
    kind: OpKind
    id: str
    memory: int | None
    rev: str | None
    base: str | None
    detail: Detail
    at: str


def pending_of(row: Row) -> Pending:
    values = list(row)
    values[7] = msgspec.json.decode(values[7], type=Detail)
    return Pending(*values)


def enqueue(
    connection: WriteTransaction,
    kind: OpKind,
    id: str,
    memory: int | None,
    detail: Detail | None = None,
    *,
    rev: str | None = None,
    base: str | None = None,
    first: bool = False,
) -> None:
    values = {
        "op": new_id(),
        "kind": kind,
        "id": id,
        "memory": memory,
        "rev": rev,
        "base": base,
        "at": now(),
    }
    values["detail"] = msgspec.json.encode(detail or Detail()).decode()
    connection.execute(connection.sql("replica")["enqueue_first" if first else "enqueue"], values)


def pending(connection: Connection, id: str) -> list[Pending]:
    """Return the waiting operations on a memory, in order."""
    return [
        pending_of(row)
        for row in connection.execute(connection.sql("replica")["pending"], {"id": id}).fetchall()
    ]


def forget_memory(connection: WriteTransaction, id: str) -> None:
    """Remove the sync data of a memory that is no longer here."""
    for name in ("clear_outbox", "delete", "delete_links", "delete_shares"):
        connection.execute(connection.sql("replica")[name], {"id": id})


def shares_known(connection: Connection, id: str) -> Shares:
    """Return a memory's shares, or with no id the user's tags, as once all operations are sent."""
    rows = connection.execute(connection.sql("replica")["shares"], {"id": id}).fetchall()
    return with_pending_shares(
        {(row["tag"], row["grantee"]): row["permission"] for row in rows}, pending(connection, id)
    )


def with_pending_shares(shares: Shares, waiting: Iterable[Pending]) -> Shares:
    shares = dict(shares)
    for one in waiting:
        share = one.detail.share
        if share is not None and one.kind in ("share", "share_tag"):
            shares[share.tag, share.grantee] = share.permission
        elif share is not None:
            shares.pop((share.tag, share.grantee), None)
    return shares


def with_pending_links(ends: Set[Ends], waiting: Iterable[Pending]) -> set[Ends]:
    found = set(ends)
    for one in waiting:
        if one.detail.link is not None:
            (found.add if one.kind == "link" else found.discard)(one.detail.link.ends)
    return found


def ends_of(row: Row) -> Ends:
    return row["source"], row["kind"], row["target"]


def link_of(ends: Ends) -> LinkRecord:
    return LinkRecord(source=ends[0], kind=ends[1], target=ends[2])  # type: ignore[arg-type]
