"""A laptop's sync state and outbox, and what its server has of each memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import pairwise
from typing import Any

import msgspec

from trivet.common.clock import ClockReading, now
from trivet.common.ids import new_id
from trivet.store.records import (
    Bundle,
    Fields,
    LinkRecord,
    Rev,
    ShareRecord,
    changes_between,
)
from trivet.store.relational.database import Connection, Row, WriteTransaction
from trivet.store.relational.tables.memory_rows import row_by_id
from trivet.store.relational.tables.sync_bundles import read_bundles
from trivet.store.relational.tables.sync_feed import SYNC
from trivet.sync import core
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
Edit = tuple[Rev, Fields]  # the revision and the fields that it changes
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
    return [
        pending_of(row)
        for row in connection.execute(connection.sql("replica")["pending"], {"id": id}).fetchall()
    ]


def forget_memory(connection: WriteTransaction, id: str) -> None:
    """Remove the sync data of a memory that is no longer here."""
    for name in ("clear_outbox", "delete", "delete_links", "delete_shares"):
        connection.execute(connection.sql("replica")[name], {"id": id})


def shares_known(connection: Connection, id: str) -> Shares:
    """Return a memory's shares, or with no id the user's tags, once all operations are sent."""
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


def with_pending_edits(trunk: Sequence[Rev], pending: Iterable[Edit]) -> tuple[Rev, ...]:
    revs = list(trunk)
    for rev, patch in pending:
        last = revs[-1]
        if rev.rev not in {one.rev for one in revs}:
            fields = {**last.fields, **patch}
            revs.append(msgspec.structs.replace(rev, fields=fields, number=last.number + 1))
    return tuple(revs)


def ends_of(row: Row) -> Ends:
    return row["source"], row["kind"], row["target"]


def link_of(ends: Ends) -> LinkRecord:
    return LinkRecord(source=ends[0], kind=ends[1], target=ends[2])  # type: ignore[arg-type]


def bundle_of(connection: Connection, one: Pending) -> Bundle:
    assert one.memory is not None, "it goes with its memory"
    return read_bundles(connection, [one.memory])[one.memory]


def revision_of(connection: Connection, one: Pending) -> Rev:
    return bundle_of(connection, one).revs[one.rev or ""]


def server_bundle(connection: Connection, state: LaptopState, replica: Any) -> Bundle:
    """Return a memory as the server last sent it."""
    sql = connection.sql("replica")
    bundle = read_bundles(connection, [replica["memory"]])[replica["memory"]]
    unsent_edits = {
        row[0]
        for row in connection.execute(sql["unsent_branches"], {"key": replica["memory"]}).fetchall()
    }
    shares = connection.execute(sql["shares"], {"id": replica["id"]}).fetchall()
    linked = {
        ends_of(row) for row in connection.execute(sql["links"], {"id": replica["id"]}).fetchall()
    }
    known = {one.ends for one in bundle.links}
    # This resolution may never reach the server; until then the conflict is open.
    unsaid = pending(connection, replica["id"]) if bundle.branches else ()
    undecided = {rev for one in unsaid if one.kind == "resolve" for rev in one.detail.revs}
    return msgspec.structs.replace(
        bundle,
        owner=server_owner(state, bundle.owner),
        trunk=tuple(rev for rev in bundle.trunk if rev.number <= replica["revision"]),
        branches=tuple(rev for rev in bundle.branches if rev.rev not in unsent_edits),
        waiting=tuple(
            rev.rev for rev in bundle.branches if rev.rev in {*bundle.waiting, *undecided}
        ),
        shares=tuple(
            ShareRecord(grantee=row["grantee"], permission=row["permission"]) for row in shares
        ),
        links=tuple(one for one in bundle.links if one.ends in linked)
        + tuple(map(link_of, sorted(linked - known))),
        access=replica["access"],
        epoch=replica["epoch"],
        seq=replica["seq"],
    )


def heal_bundle(connection: Connection, state: LaptopState, id: str) -> Bundle:
    """Return what a restored server may lack of a memory."""
    replica = connection.execute(connection.sql("replica")["by_id"], {"id": id}).fetchone()
    known = server_bundle(connection, state, replica)
    row = connection.execute(
        connection.sql("replica")["carried"], {"key": replica["memory"]}
    ).fetchone()
    waits = any(one.kind == "heal" for one in pending(connection, id))
    return core.merge_carried(
        msgspec.json.decode(row[0], type=Bundle) if row else None, known, waits
    )


def pending_edits(connection: Connection, id: str, besides: Set[str] = frozenset()) -> list[Edit]:
    """Return the edits that wait to be sent, except those in `besides`."""
    found: list[Edit] = []
    for one in (
        one for one in pending(connection, id) if one.kind == "edit" and one.rev not in besides
    ):
        rev = revision_of(connection, one)
        found.append(
            (rev, {name: rev.fields[name] for name in one.detail.names if name in rev.fields})
        )
    return found


def withheld_edits(connection: Connection, state: LaptopState, id: str) -> list[Edit]:
    """Return edits of a memory that is sensitive, unknown to the server; they are never sent."""
    row = row_by_id(connection, id)
    says_so = any(
        one.kind == "edit" and "sensitive" in one.detail.names for one in pending(connection, id)
    )
    if row is None or not row["sensitive"] or state.place.sensitive or not says_so:
        return []
    replica = connection.execute(connection.sql("replica")["by_id"], {"id": id}).fetchone()
    known = replica["revision"] if replica is not None else 1
    trunk = read_bundles(connection, [row["key"]])[row["key"]].trunk
    return [
        (rev, changes_between(last.fields, rev.fields))
        for last, rev in pairwise(trunk)
        if rev.number > known
    ]


def unsent_edits(
    connection: Connection, state: LaptopState, id: str, besides: Set[str] = frozenset()
) -> list[Edit]:
    """Return the edits that the server does not have, as far as this laptop knows.

    Waiting edits come first: another machine with the same disk may have sent them.
    """
    kept = withheld_edits(connection, state, id)
    known = besides | {rev.rev for rev, _ in kept}
    return [*pending_edits(connection, id, known), *kept]
