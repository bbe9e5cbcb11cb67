"""What a laptop has to send. Each revision that the server does not know is an operation, and so is each other change.

Nothing is queued when a memory is written: a revision is its own entry in the outbox, in the transaction that wrote it.
Before each exchange `prepare` gives what the record of changes names its operations, and notes them. An operation
holds no text. What it says is read from the memory when it is sent, so that what was purged or redacted meanwhile is
not sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec

from trivet.clock import now
from trivet.ids import new_id
from trivet.memory_fields import as_json
from trivet.store.relational.bundles import digest_of, name_revisions, read_bundles
from trivet.store.relational.database import Connection, Row, WriteTransaction
from trivet.store.relational.feed import NUMBERED_AT_ONCE, changed_keys, last_change
from trivet.store.sync_records import Bundle, FeedbackRecord, LinkRecord, Rev, ShareRecord, changes_between
from trivet.sync import core
from trivet.sync.messages import Op, OpKind
from trivet.sync.state import LaptopState, owner_there, save
from trivet.types import LOCAL, Permission

Ends = tuple[str, str, str]
Shares = dict[tuple[str, str], Permission]  # by tag, empty for a memory, and grantee


class Detail(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an operation is about, without any text of a memory."""

    names: tuple[str, ...] = ()  # of the fields that an edit changes
    was: dict[str, str] = {}  # marks of what they said before
    share: ShareRecord | None = None
    link: LinkRecord | None = None
    revs: tuple[str, ...] = ()


class Pending(msgspec.Struct, frozen=True):
    """One entry of the outbox."""

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
    values = {"op": new_id(), "kind": kind, "id": id, "memory": memory, "rev": rev, "base": base, "at": now()}
    values["detail"] = msgspec.json.encode(detail or Detail()).decode()
    connection.execute(connection.sql("replica")["enqueue_first" if first else "enqueue"], values)


def prepare(connection: WriteTransaction, state: LaptopState, sensitive: bool) -> LaptopState:
    """Puts all that was written since into the outbox. `sensitive` memories stay here unless both sides allow them."""
    last = last_change(connection)
    _prepare_purges(connection)
    _prepare_tag_shares(connection)
    if last == state.change:
        return state
    keys = changed_keys(connection, state.change, last)
    for start in range(0, len(keys), NUMBERED_AT_ONCE):
        _prepare_memories(connection, keys[start : start + NUMBERED_AT_ONCE], state.user, sensitive)
    state = msgspec.structs.replace(state, change=last)
    save(connection, state)
    return state


def _prepare_memories(connection: WriteTransaction, keys: Sequence[int], user: str, sensitive: bool) -> None:
    sql = connection.sql("replica")
    name_revisions(connection, keys, user)
    bundles = read_bundles(connection, keys)
    listed = {"keys": as_json(keys)}
    replicas = {row["memory"]: row for row in connection.execute(sql["by_keys"], listed).fetchall()}
    queued: dict[int, set[str]] = {}
    for row in connection.execute(sql["pending_of_keys"], listed).fetchall():
        queued.setdefault(row["memory"], set()).add(row["rev"])
    for key, bundle in bundles.items():
        replica, sent = replicas.get(key), queued.get(key, set())
        if replica is None and not sent and bundle.owner != LOCAL:
            continue  # another user's memory that this store had before it joined: not ours to send
        if _prepare_revisions(connection, key, bundle, replica, sent, sensitive) and bundle.owner == LOCAL:
            _prepare_shares(connection, key, bundle)
    for key, bundle in bundles.items():
        _prepare_links(connection, key, bundle)
    prepare_feedback(connection, keys, sensitive)


def prepare_feedback(connection: WriteTransaction, keys: Iterable[int], sensitive: bool) -> None:
    """One operation for all that was said of a memory since; what it says is read when it is sent."""
    listed = {"keys": as_json(keys), "sensitive": sensitive}
    rows = connection.execute(connection.sql("replica")["unsaid"], listed).fetchall()
    for key, id in dict.fromkeys((row["memory"], row["id"]) for row in rows):
        if _takes_part(connection, id) and not any(one.kind == "feedback" for one in pending(connection, id)):
            enqueue(connection, "feedback", id, key)


def _prepare_revisions(
    connection: WriteTransaction, key: int, bundle: Bundle, replica: Any, queued: set[str], sensitive: bool
) -> bool:
    """Whether the memory takes part in sync at all."""
    known = replica["revision"] if replica else 0
    last = next((rev for rev in reversed(bundle.trunk) if rev.number <= known or rev.rev in queued), None)
    for rev in bundle.trunk:
        if rev.number <= known or rev.rev in queued:
            continue
        withheld = _withheld(rev, sensitive)
        if last is None:
            if withheld:
                continue
            enqueue(connection, "create", bundle.id, key, Detail(names=tuple(rev.fields)), rev=rev.rev)
        else:
            names = tuple(changes_between(last.fields, rev.fields))
            if withheld:
                names = ("sensitive",) if "sensitive" in names else ()
            if not withheld or names:
                was = {name: core.mark(last.fields.get(name)) for name in names}
                enqueue(connection, "edit", bundle.id, key, Detail(names=names, was=was), rev=rev.rev, base=last.rev)
            if withheld:
                continue
        last = rev
    _prepare_scrub(connection, key, bundle, replica)
    return last is not None


def _withheld(rev: Rev, sensitive: bool) -> bool:
    return bool(rev.fields.get("sensitive")) and not sensitive


def _prepare_scrub(connection: WriteTransaction, key: int, bundle: Bundle, replica: Any) -> None:
    """Revisions that were rewritten in place, by a redaction."""
    if replica is None or replica["access"] != "own":
        return
    digest = digest_of_known(bundle, replica["revision"])
    if digest != replica["digest"]:
        revs = tuple(rev.rev for rev in bundle.trunk if rev.number <= replica["revision"])
        enqueue(connection, "scrub", bundle.id, key, Detail(revs=revs))
        connection.execute(connection.sql("replica")["set_digest"], {"id": bundle.id, "digest": digest})


def digest_of_known(bundle: Bundle, revision: int) -> str:
    """Of the history that the server told."""
    said = [(rev.rev, rev.fields) for rev in bundle.trunk if rev.number <= revision]
    return digest_of(Bundle(id=bundle.id, owner="", trunk=()), said)


def _prepare_shares(connection: WriteTransaction, key: int, bundle: Bundle) -> None:
    known = shares_known(connection, bundle.id)
    actual = {("", one.grantee): one.permission for one in bundle.shares if one.grantee != LOCAL}
    for kind, share in _share_changes(known, actual):
        enqueue(connection, "share" if kind else "unshare", bundle.id, key, Detail(share=share))


def _prepare_tag_shares(connection: WriteTransaction) -> None:
    known = shares_known(connection, "")
    rows = connection.execute(connection.sql("replica")["own_tag_shares"]).fetchall()
    actual: Shares = {(row["tag"], row["grantee"]): row["permission"] for row in rows}
    for kind, share in _share_changes(known, actual):
        enqueue(connection, "share_tag" if kind else "unshare_tag", "", None, Detail(share=share))


def _share_changes(known: Shares, actual: Shares) -> Iterator[tuple[bool, ShareRecord]]:
    """What to share, and what to share no longer."""
    for (tag, grantee), permission in sorted(actual.items()):
        if known.get((tag, grantee)) != permission:
            yield True, ShareRecord(tag=tag, grantee=grantee, permission=permission)
    for tag, grantee in sorted(known.keys() - actual.keys()):
        yield False, ShareRecord(tag=tag, grantee=grantee, permission="read")


def shares_known(connection: Connection, id: str) -> Shares:
    """With whom the server shares a memory, or with no id the user's tags, once it has all that waits."""
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


def _prepare_links(connection: WriteTransaction, key: int, bundle: Bundle) -> None:
    """Of those that start here. An end that stays on this machine keeps the link here too."""
    sql = connection.sql("replica")
    told = {ends_of(row) for row in connection.execute(sql["links"], {"id": bundle.id}).fetchall()}
    known = with_pending_links({ends for ends in told if ends[0] == bundle.id}, pending(connection, bundle.id))
    actual = {one.ends: one for one in bundle.links if one.source == bundle.id}
    for ends, link in sorted(actual.items()):
        if ends not in known and all(_takes_part(connection, id) for id in (link.source, link.target)):
            enqueue(connection, "link", bundle.id, key, Detail(link=link))
    for ends in sorted(known - actual.keys()):
        if all(_takes_part(connection, id) for id in (ends[0], ends[2])):
            enqueue(connection, "unlink", bundle.id, key, Detail(link=_link(ends)))
        else:
            connection.execute(sql["delete_link"], dict(zip(("source", "kind", "target"), ends, strict=True)))


def with_pending_links(ends: Set[Ends], waiting: Iterable[Pending]) -> set[Ends]:
    found = set(ends)
    for one in waiting:
        if one.detail.link is not None:
            (found.add if one.kind == "link" else found.discard)(one.detail.link.ends)
    return found


def ends_of(row: Row) -> Ends:
    return row["source"], row["kind"], row["target"]


def _link(ends: Ends) -> LinkRecord:
    return LinkRecord(source=ends[0], kind=ends[1], target=ends[2])  # type: ignore[arg-type]


def pending(connection: Connection, id: str) -> list[Pending]:
    """The operations on a memory that wait to be sent, in their order."""
    return [pending_of(row) for row in connection.execute(connection.sql("replica")["pending"], {"id": id}).fetchall()]


def _key(connection: Connection, id: str) -> int | None:
    row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
    return None if row is None else int(row["key"])


def _takes_part(connection: Connection, id: str) -> bool:
    """It is here, and the server has it or is going to."""
    if _key(connection, id) is None:
        return False
    sql = connection.sql("replica")
    return any(connection.execute(sql[name], {"id": id}).fetchone() for name in ("by_id", "pending"))


def _prepare_purges(connection: WriteTransaction) -> None:
    for row in connection.execute(connection.sql("sync")["unnumbered"]).fetchall():
        forget(connection, row["id"])
        connection.execute(connection.sql("replica")["number_tombstone"], {"id": row["id"], "owner": row["owner"]})
        if row["owner"] == LOCAL:
            enqueue(connection, "purge", row["id"], None)


def forget(connection: WriteTransaction, id: str) -> None:
    """Drops what sync knows of a memory that is no longer here."""
    for name in ("clear_outbox", "delete", "delete_links", "delete_shares"):
        connection.execute(connection.sql("replica")[name], {"id": id})


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
        return msgspec.structs.replace(op, bundle=brought(connection, state, one.id))
    if one.kind == "feedback":
        return msgspec.structs.replace(op, feedback=_unsaid(connection, state, one))
    return msgspec.structs.replace(op, share=detail.share, link=detail.link, revs=detail.revs)


def _unsaid(connection: Connection, state: LaptopState, one: Pending) -> tuple[FeedbackRecord, ...]:
    listed = {"keys": as_json([one.memory]), "sensitive": state.place.sensitive}
    rows = connection.execute(connection.sql("replica")["unsaid"], listed).fetchall()
    return tuple(FeedbackRecord(query=row["query"], verdict=row["verdict"], at=row["at"]) for row in rows)


def said(connection: Connection, one: Pending) -> Rev:
    """The revision that an operation is about."""
    return _bundle(connection, one).revs[one.rev or ""]


def _bundle(connection: Connection, one: Pending) -> Bundle:
    assert one.memory is not None, "it goes with its memory"
    return read_bundles(connection, [one.memory])[one.memory]


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
    return msgspec.structs.replace(
        bundle,
        owner=owner_there(state, bundle.owner),
        trunk=tuple(rev for rev in bundle.trunk if rev.number <= replica["revision"]),
        branches=tuple(rev for rev in bundle.branches if rev.rev not in unsent),
        shares=tuple(ShareRecord(grantee=row["grantee"], permission=row["permission"]) for row in shares),
        links=tuple(one for one in bundle.links if one.ends in linked) + tuple(map(_link, sorted(linked - known))),
        access=replica["access"],
        epoch=replica["epoch"],
        seq=replica["seq"],
    )


def patches(connection: Connection, id: str) -> list[tuple[Rev, Mapping[str, Any]]]:
    """The edits of a memory that wait to be sent, with what each changes."""
    found: list[tuple[Rev, Mapping[str, Any]]] = []
    for one in (one for one in pending(connection, id) if one.kind == "edit"):
        rev = said(connection, one)
        found.append((rev, {name: rev.fields[name] for name in one.detail.names if name in rev.fields}))
    return found
