"""Finds what a laptop has to send: each revision that the server does not know, and each other change.

Nothing is queued when a memory is written: a revision is its own entry in the outbox, in the transaction that wrote it.
Before each exchange `prepare` gives what the record of changes names its operations, and notes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from trivet.memory_fields import as_json
from trivet.store.relational.bundles import digest_of, name_revisions, read_bundles
from trivet.store.relational.database import Connection, WriteTransaction
from trivet.store.relational.feed import NUMBERED_AT_ONCE, changed_keys, last_change
from trivet.store.sync_records import Bundle, Rev, ShareRecord, changes_between
from trivet.sync import core
from trivet.sync.outbox import (
    Detail,
    Shares,
    ends_of,
    enqueue,
    forget,
    link_of,
    pending,
    shares_known,
    with_pending_links,
)
from trivet.sync.state import LaptopState, save
from trivet.types import LOCAL


def prepare(connection: WriteTransaction, state: LaptopState, sensitive: bool) -> LaptopState:
    """Puts all that was written since into the outbox. `sensitive` memories stay here unless both sides allow them."""
    last = last_change(connection)
    _prepare_purges(connection)
    _prepare_tag_shares(connection)
    if last == state.change:
        return state
    keys = changed_keys(connection, state.change, last)
    for start in range(0, len(keys), NUMBERED_AT_ONCE):
        prepare_memories(connection, keys[start : start + NUMBERED_AT_ONCE], state.user, sensitive)
    state = msgspec.structs.replace(state, change=last)
    save(connection, state)
    return state


def _prepare_purges(connection: WriteTransaction) -> None:
    for row in connection.execute(connection.sql("sync")["unnumbered"]).fetchall():
        forget(connection, row["id"])
        connection.execute(connection.sql("replica")["number_tombstone"], {"id": row["id"], "owner": row["owner"]})
        if row["owner"] == LOCAL:
            enqueue(connection, "purge", row["id"], None, rev=row["first_rev"])


def _prepare_tag_shares(connection: WriteTransaction) -> None:
    known = shares_known(connection, "")
    rows = connection.execute(connection.sql("replica")["own_tag_shares"]).fetchall()
    actual: Shares = {(row["tag"], row["grantee"]): row["permission"] for row in rows}
    for kind, share in _share_changes(known, actual):
        enqueue(connection, "share_tag" if kind else "unshare_tag", "", None, Detail(share=share))


def prepare_memories(connection: WriteTransaction, keys: Sequence[int], user: str, sensitive: bool) -> None:
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


def _prepare_revisions(
    connection: WriteTransaction, key: int, bundle: Bundle, replica: Any, queued: set[str], sensitive: bool
) -> bool:
    """Whether the memory takes part in sync at all."""
    known = replica["revision"] if replica else 0
    last: Rev | None = None  # as the server knows it, or will
    for rev in bundle.trunk:
        withheld = _withheld(rev, sensitive)
        if rev.number <= known:
            last = rev
            continue
        if rev.rev in queued:
            last = _as_sent(rev, last, withheld)
            continue
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
            if withheld and not names:
                continue
        last = _as_sent(rev, last, withheld)
    _prepare_scrub(connection, key, bundle, replica)
    return last is not None


def _as_sent(rev: Rev, last: Rev | None, withheld: bool) -> Rev:
    """Of one that is withheld the server is told that the memory is sensitive now, and none of its words."""
    if not withheld or last is None:
        return rev
    return msgspec.structs.replace(rev, fields={**last.fields, "sensitive": True})


def _withheld(rev: Rev, sensitive: bool) -> bool:
    return bool(rev.fields.get("sensitive")) and not sensitive


def _prepare_scrub(connection: WriteTransaction, key: int, bundle: Bundle, replica: Any) -> None:
    """Revisions that were rewritten in place, by a redaction."""
    if replica is None or replica["access"] != "own":
        return
    bundle = without_unsent(connection, key, bundle)
    digest = digest_of_known(bundle, replica["revision"])
    if digest != replica["digest"]:
        known = [rev for rev in bundle.trunk if rev.number <= replica["revision"]]
        revs = tuple(rev.rev for rev in (*known, *bundle.branches))
        enqueue(connection, "scrub", bundle.id, key, Detail(revs=revs))
        connection.execute(connection.sql("replica")["set_digest"], {"id": bundle.id, "digest": digest})


def without_unsent(connection: Connection, key: int, bundle: Bundle) -> Bundle:
    """Without the branches that only this laptop knows."""
    if not bundle.branches:
        return bundle
    unsent = {row[0] for row in connection.execute(connection.sql("replica")["unsent_branches"], {"key": key})}
    return msgspec.structs.replace(bundle, branches=tuple(rev for rev in bundle.branches if rev.rev not in unsent))


def digest_of_known(bundle: Bundle, revision: int) -> str:
    """Of what the server told: the history, and the edits beside it."""
    beside = sorted(bundle.branches, key=lambda rev: rev.rev)
    known = (*(rev for rev in bundle.trunk if rev.number <= revision), *beside)
    said = [(rev.rev, rev.fields) for rev in known]
    return digest_of(Bundle(id=bundle.id, owner="", trunk=()), said)


def _prepare_shares(connection: WriteTransaction, key: int, bundle: Bundle) -> None:
    known = shares_known(connection, bundle.id)
    actual = {("", one.grantee): one.permission for one in bundle.shares if one.grantee != LOCAL}
    for kind, share in _share_changes(known, actual):
        enqueue(connection, "share" if kind else "unshare", bundle.id, key, Detail(share=share))


def _share_changes(known: Shares, actual: Shares) -> Iterator[tuple[bool, ShareRecord]]:
    """What to share, and what to share no longer."""
    for (tag, grantee), permission in sorted(actual.items()):
        if known.get((tag, grantee)) != permission:
            yield True, ShareRecord(tag=tag, grantee=grantee, permission=permission)
    for tag, grantee in sorted(known.keys() - actual.keys()):
        yield False, ShareRecord(tag=tag, grantee=grantee, permission="read")


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
            enqueue(connection, "unlink", bundle.id, key, Detail(link=link_of(ends)))
        else:
            connection.execute(sql["delete_link"], dict(zip(("source", "kind", "target"), ends, strict=True)))


def _takes_part(connection: Connection, id: str) -> bool:
    """It is here, and the server has it or is going to."""
    if _key(connection, id) is None:
        return False
    sql = connection.sql("replica")
    return any(connection.execute(sql[name], {"id": id}).fetchone() for name in ("by_id", "pending"))


def _key(connection: Connection, id: str) -> int | None:
    row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
    return None if row is None else int(row["key"])


def prepare_feedback(connection: WriteTransaction, keys: Iterable[int], sensitive: bool) -> None:
    """One operation for all that was said of a memory since; what it says is read when it is sent."""
    listed = {"keys": as_json(keys), "sensitive": sensitive}
    rows = connection.execute(connection.sql("replica")["unsaid"], listed).fetchall()
    for key, id in dict.fromkeys((row["memory"], row["id"]) for row in rows):
        if _takes_part(connection, id) and not any(one.kind == "feedback" for one in pending(connection, id)):
            enqueue(connection, "feedback", id, key)
