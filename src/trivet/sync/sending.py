"""Spells out what waits to be sent, as it reads when it is sent: what was purged or redacted meanwhile is not."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import pairwise
from typing import Any

import msgspec

from trivet.memory_fields import as_json
from trivet.store.relational.bundles import read_bundles
from trivet.store.relational.database import Connection
from trivet.store.sync_records import Bundle, FeedbackRecord, Rev, ShareRecord, changes_between
from trivet.sync import core
from trivet.sync.messages import Op
from trivet.sync.outbox import Pending, ends_of, link_of, pending, pending_of
from trivet.sync.state import LaptopState, owner_there


def outgoing(connection: Connection, state: LaptopState, limit: int) -> list[Op]:
    """The next operations, with what they say now."""
    rows = connection.execute(connection.sql("replica")["outbox"], {"limit": limit}).fetchall()
    return [spelled_out(connection, state, pending_of(row)) for row in rows]


def spelled_out(connection: Connection, state: LaptopState, one: Pending) -> Op:
    op = Op(op=one.op, kind=one.kind, id=one.id, rev=one.rev, base=one.base, at=one.at)
    detail = one.detail
    if one.kind in ("create", "edit"):
        rev = said(connection, one)
        fields = {name: rev.fields[name] for name in detail.names if name in rev.fields}
        return msgspec.structs.replace(op, fields=fields, was=detail.was, at=rev.at, action=rev.action)
    if one.kind == "scrub":
        revs = _bundle(connection, one).revs
        scrubbed = {rev: revs[rev].fields for rev in detail.revs if rev in revs}
        return msgspec.structs.replace(op, scrubbed=scrubbed)
    if one.kind == "heal":
        rows = connection.execute(connection.sql("replica")["ended_shares"], {"id": one.id}).fetchall()
        ended = tuple(row["grantee"] for row in rows)
        return msgspec.structs.replace(op, bundle=brought(connection, state, one.id), ended=ended)
    if one.kind == "feedback":
        return msgspec.structs.replace(op, feedback=_unsaid(connection, state, one))
    return msgspec.structs.replace(op, share=detail.share, link=detail.link, revs=detail.revs)


def said(connection: Connection, one: Pending) -> Rev:
    """The revision that an operation is about."""
    return _bundle(connection, one).revs[one.rev or ""]


def _bundle(connection: Connection, one: Pending) -> Bundle:
    assert one.memory is not None, "it goes with its memory"
    return read_bundles(connection, [one.memory])[one.memory]


def _unsaid(connection: Connection, state: LaptopState, one: Pending) -> tuple[FeedbackRecord, ...]:
    listed = {"keys": as_json([one.memory]), "sensitive": state.place.sensitive}
    rows = connection.execute(connection.sql("replica")["unsaid"], listed).fetchall()
    return tuple(FeedbackRecord(query=row["query"], verdict=row["verdict"], at=row["at"]) for row in rows)


def brought(connection: Connection, state: LaptopState, id: str) -> Bundle:
    """What a server that was put back may lack of a memory: what it told before, and what it told in older epochs."""
    replica = connection.execute(connection.sql("replica")["by_id"], {"id": id}).fetchone()
    known = told(connection, state, replica)
    row = connection.execute(connection.sql("replica")["carried"], {"key": replica["memory"]}).fetchone()
    waits = any(one.kind == "heal" for one in pending(connection, id))
    return core.carried(msgspec.json.decode(row[0], type=Bundle) if row else None, known, waits)


def told(connection: Connection, state: LaptopState, replica: Any) -> Bundle:
    """A memory as the server last told it, without what is still to be sent."""
    sql = connection.sql("replica")
    bundle = read_bundles(connection, [replica["memory"]])[replica["memory"]]
    unsent = {row[0] for row in connection.execute(sql["unsent_branches"], {"key": replica["memory"]}).fetchall()}
    shares = connection.execute(sql["shares"], {"id": replica["id"]}).fetchall()
    linked = {ends_of(row) for row in connection.execute(sql["links"], {"id": replica["id"]}).fetchall()}
    known = {one.ends for one in bundle.links}
    # Whoever settled a clash here may never be able to send that: until then nobody has.
    unsaid = pending(connection, replica["id"]) if bundle.branches else ()
    undecided = {rev for one in unsaid if one.kind == "resolve" for rev in one.detail.revs}
    return msgspec.structs.replace(
        bundle,
        owner=owner_there(state, bundle.owner),
        trunk=tuple(rev for rev in bundle.trunk if rev.number <= replica["revision"]),
        branches=tuple(rev for rev in bundle.branches if rev.rev not in unsent),
        waiting=tuple(rev.rev for rev in bundle.branches if rev.rev in {*bundle.waiting, *undecided}),
        shares=tuple(ShareRecord(grantee=row["grantee"], permission=row["permission"]) for row in shares),
        links=tuple(one for one in bundle.links if one.ends in linked) + tuple(map(link_of, sorted(linked - known))),
        access=replica["access"],
        epoch=replica["epoch"],
        seq=replica["seq"],
    )


def kept_here(connection: Connection, state: LaptopState, id: str) -> list[tuple[Rev, Mapping[str, Any]]]:
    """The words of a memory that is sensitive here and whose server is still to hear of it: they are told to nobody.

    All that was written since the server last told it, whole; empty where the memory is not so.
    """
    row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
    says_so = any(one.kind == "edit" and "sensitive" in one.detail.names for one in pending(connection, id))
    if row is None or not row["sensitive"] or state.place.sensitive or not says_so:
        return []
    replica = connection.execute(connection.sql("replica")["by_id"], {"id": id}).fetchone()
    known = replica["revision"] if replica is not None else 1
    trunk = read_bundles(connection, [row["key"]])[row["key"]].trunk
    return [(rev, changes_between(last.fields, rev.fields)) for last, rev in pairwise(trunk) if rev.number > known]


def patches(connection: Connection, id: str, besides: Set[str] = frozenset()) -> list[tuple[Rev, Mapping[str, Any]]]:
    """The edits of a memory that wait to be sent, with what each changes; `besides` those that are known already."""
    found: list[tuple[Rev, Mapping[str, Any]]] = []
    for one in (one for one in pending(connection, id) if one.kind == "edit" and one.rev not in besides):
        rev = said(connection, one)
        found.append((rev, {name: rev.fields[name] for name in one.detail.names if name in rev.fields}))
    return found


def unsent(
    connection: Connection, state: LaptopState, id: str, besides: Set[str] = frozenset()
) -> list[tuple[Rev, Mapping[str, Any]]]:
    """The edits of a memory that are here and of which the server has not heard, as far as this laptop knows.

    One that waits may have been told already, if another machine with the same disk sent it: it comes before those
    that are kept here whole.
    """
    kept = kept_here(connection, state, id)
    known = besides | {rev.rev for rev, _ in kept}
    return [*patches(connection, id, known), *kept]
