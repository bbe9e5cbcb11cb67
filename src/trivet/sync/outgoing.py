"""The laptop's outbox: what the server does not know yet.

A write queues nothing, since its revision is the entry. Before each exchange, `enqueue_changes`
queues operations for what changed. Their text is read when they are sent, so purged or redacted
text never is. Sensitive memories are sent only while both sides allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from trivet.memory_fields import as_json
from trivet.store.records import Bundle, FeedbackRecord, Rev, ShareRecord, changes_between
from trivet.store.relational.database import Connection, WriteTransaction
from trivet.store.relational.tables.memory_rows import key_by_id
from trivet.store.relational.tables.sync_bundles import bundle_digest, name_revisions, read_bundles
from trivet.store.relational.tables.sync_feed import NUMBERING_BATCH, changed_keys, last_change
from trivet.sync import core
from trivet.sync.laptop_state import (
    Detail,
    LaptopState,
    Pending,
    Shares,
    bundle_of,
    ends_of,
    enqueue,
    forget_memory,
    heal_bundle,
    link_of,
    pending,
    pending_of,
    revision_of,
    save,
    server_bundle,
    shares_known,
    with_pending_links,
)
from trivet.sync.messages import Op
from trivet.types import LOCAL


def enqueue_changes(
    connection: WriteTransaction, state: LaptopState, sensitive: bool
) -> LaptopState:
    last = last_change(connection)
    _prepare_purges(connection)
    _prepare_tag_shares(connection)
    if last == state.change:
        return state
    keys = changed_keys(connection, state.change, last)
    for start in range(0, len(keys), NUMBERING_BATCH):
        prepare_memories(connection, keys[start : start + NUMBERING_BATCH], state.user, sensitive)
    state = msgspec.structs.replace(state, change=last)
    save(connection, state)
    return state


def _prepare_purges(connection: WriteTransaction) -> None:
    for row in connection.execute(connection.sql("sync")["unnumbered"]).fetchall():
        forget_memory(connection, row["id"])
        connection.execute(
            connection.sql("replica")["number_tombstone"], {"id": row["id"], "owner": row["owner"]}
        )
        if row["owner"] == LOCAL:
            enqueue(connection, "purge", row["id"], None, rev=row["first_rev"])


def _prepare_tag_shares(connection: WriteTransaction) -> None:
    known = shares_known(connection, "")
    rows = connection.execute(connection.sql("replica")["own_tag_shares"]).fetchall()
    actual: Shares = {(row["tag"], row["grantee"]): row["permission"] for row in rows}
    for kind, share in _share_changes(known, actual):
        enqueue(connection, "share_tag" if kind else "unshare_tag", "", None, Detail(share=share))


def prepare_memories(
    connection: WriteTransaction, keys: Sequence[int], user: str, sensitive: bool
) -> None:
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
            continue  # another user's, here before the join: not ours to send
        if (
            _prepare_revisions(connection, key, bundle, replica, sent, sensitive)
            and bundle.owner == LOCAL
        ):
            _prepare_shares(connection, key, bundle)
    for key, bundle in bundles.items():
        _prepare_links(connection, key, bundle)
    prepare_feedback(connection, keys, sensitive)


def _prepare_revisions(
    connection: WriteTransaction,
    key: int,
    bundle: Bundle,
    replica: Any,
    queued: set[str],
    sensitive: bool,
) -> bool:
    """Queue revisions; return whether the memory is synced at all."""
    known = replica["revision"] if replica else 0
    last: Rev | None = None  # as the server will know it
    for rev in bundle.trunk:
        withheld = _stays_local(rev, sensitive)
        if rev.number <= known:
            last = rev
            continue
        if rev.rev in queued:
            last = _as_server_sees(rev, last, withheld)
            continue
        if last is None:
            if withheld:
                continue
            enqueue(
                connection, "create", bundle.id, key, Detail(names=tuple(rev.fields)), rev=rev.rev
            )
        else:
            names = tuple(changes_between(last.fields, rev.fields))
            if withheld:
                names = ("sensitive",) if "sensitive" in names else ()
            if not withheld or names:
                was = {name: core.value_mark(last.fields.get(name)) for name in names}
                enqueue(
                    connection,
                    "edit",
                    bundle.id,
                    key,
                    Detail(names=names, was=was),
                    rev=rev.rev,
                    base=last.rev,
                )
            if withheld and not names:
                continue
        last = _as_server_sees(rev, last, withheld)
    _prepare_scrub(connection, key, bundle, replica)
    return last is not None


def _as_server_sees(rev: Rev, last: Rev | None, withheld: bool) -> Rev:
    if not withheld or last is None:
        return rev
    # The server learns only that the memory is sensitive.
    return msgspec.structs.replace(rev, fields={**last.fields, "sensitive": True})


def _stays_local(rev: Rev, sensitive: bool) -> bool:
    return bool(rev.fields.get("sensitive")) and not sensitive


def _prepare_scrub(connection: WriteTransaction, key: int, bundle: Bundle, replica: Any) -> None:
    if replica is None or replica["access"] != "own":
        return
    bundle = without_unsent_branches(connection, key, bundle)
    digest = digest_of_known(bundle, replica["revision"])
    if digest != replica["digest"]:
        known = [rev for rev in bundle.trunk if rev.number <= replica["revision"]]
        revs = tuple(rev.rev for rev in (*known, *bundle.branches))
        enqueue(connection, "scrub", bundle.id, key, Detail(revs=revs))
        connection.execute(
            connection.sql("replica")["set_digest"], {"id": bundle.id, "digest": digest}
        )


def without_unsent_branches(connection: Connection, key: int, bundle: Bundle) -> Bundle:
    if not bundle.branches:
        return bundle
    unsent = {
        row[0]
        for row in connection.execute(connection.sql("replica")["unsent_branches"], {"key": key})
    }
    return msgspec.structs.replace(
        bundle, branches=tuple(rev for rev in bundle.branches if rev.rev not in unsent)
    )


def digest_of_known(bundle: Bundle, revision: int) -> str:
    """Return a digest of the history and branches that the server sent."""
    branches = sorted(bundle.branches, key=lambda rev: rev.rev)
    known = (*(rev for rev in bundle.trunk if rev.number <= revision), *branches)
    contents = [(rev.rev, rev.fields) for rev in known]
    return bundle_digest(Bundle(id=bundle.id, owner="", trunk=()), contents)


def _prepare_shares(connection: WriteTransaction, key: int, bundle: Bundle) -> None:
    known = shares_known(connection, bundle.id)
    actual = {("", one.grantee): one.permission for one in bundle.shares if one.grantee != LOCAL}
    for kind, share in _share_changes(known, actual):
        enqueue(connection, "share" if kind else "unshare", bundle.id, key, Detail(share=share))


def _share_changes(known: Shares, actual: Shares) -> Iterator[tuple[bool, ShareRecord]]:
    """Yield the shares to make (True) and to end (False)."""
    for (tag, grantee), permission in sorted(actual.items()):
        if known.get((tag, grantee)) != permission:
            yield True, ShareRecord(tag=tag, grantee=grantee, permission=permission)
    for tag, grantee in sorted(known.keys() - actual.keys()):
        yield False, ShareRecord(tag=tag, grantee=grantee, permission="read")


def _prepare_links(connection: WriteTransaction, key: int, bundle: Bundle) -> None:
    """Queue changed links that start here, if both ends are synced."""
    sql = connection.sql("replica")
    rows = connection.execute(sql["links"], {"id": bundle.id}).fetchall()
    sent = {ends_of(row) for row in rows}
    known = with_pending_links(
        {ends for ends in sent if ends[0] == bundle.id}, pending(connection, bundle.id)
    )
    actual = {one.ends: one for one in bundle.links if one.source == bundle.id}
    for ends, link in sorted(actual.items()):
        if ends not in known and all(
            _is_synced(connection, id) for id in (link.source, link.target)
        ):
            enqueue(connection, "link", bundle.id, key, Detail(link=link))
    for ends in sorted(known - actual.keys()):
        if all(_is_synced(connection, id) for id in (ends[0], ends[2])):
            enqueue(connection, "unlink", bundle.id, key, Detail(link=link_of(ends)))
        else:
            connection.execute(
                sql["delete_link"], dict(zip(("source", "kind", "target"), ends, strict=True))
            )


def _is_synced(connection: Connection, id: str) -> bool:
    if key_by_id(connection, id) is None:
        return False
    sql = connection.sql("replica")
    return any(
        connection.execute(sql[name], {"id": id}).fetchone() for name in ("by_id", "pending")
    )


def prepare_feedback(connection: WriteTransaction, keys: Iterable[int], sensitive: bool) -> None:
    """Queue one operation per memory with new feedback."""
    listed = {"keys": as_json(keys), "sensitive": sensitive}
    rows = connection.execute(connection.sql("replica")["unsaid"], listed).fetchall()
    for key, id in dict.fromkeys((row["memory"], row["id"]) for row in rows):
        if _is_synced(connection, id) and not any(
            one.kind == "feedback" for one in pending(connection, id)
        ):
            enqueue(connection, "feedback", id, key)


def next_ops(connection: Connection, state: LaptopState, limit: int) -> list[Op]:
    rows = connection.execute(connection.sql("replica")["outbox"], {"limit": limit}).fetchall()
    return [to_op(connection, state, pending_of(row)) for row in rows]


def to_op(connection: Connection, state: LaptopState, one: Pending) -> Op:
    op = Op(op=one.op, kind=one.kind, id=one.id, rev=one.rev, base=one.base, at=one.at)
    detail = one.detail
    if one.kind in ("create", "edit"):
        rev = revision_of(connection, one)
        fields = {name: rev.fields[name] for name in detail.names if name in rev.fields}
        return msgspec.structs.replace(
            op, fields=fields, was=detail.was, at=rev.at, action=rev.action
        )
    if one.kind == "scrub":
        revs = bundle_of(connection, one).revs
        scrubbed = {rev: revs[rev].fields for rev in detail.revs if rev in revs}
        return msgspec.structs.replace(op, scrubbed=scrubbed)
    if one.kind == "heal":
        rows = connection.execute(
            connection.sql("replica")["ended_shares"], {"id": one.id}
        ).fetchall()
        ended = tuple(row["grantee"] for row in rows)
        return msgspec.structs.replace(
            op, bundle=heal_bundle(connection, state, one.id), ended=ended
        )
    if one.kind == "feedback":
        return msgspec.structs.replace(op, feedback=_unsent_feedback(connection, state, one))
    return msgspec.structs.replace(op, share=detail.share, link=detail.link, revs=detail.revs)


def _unsent_feedback(
    connection: Connection, state: LaptopState, one: Pending
) -> tuple[FeedbackRecord, ...]:
    listed = {"keys": as_json([one.memory]), "sensitive": state.place.sensitive}
    rows = connection.execute(connection.sql("replica")["unsaid"], listed).fetchall()
    return tuple(
        FeedbackRecord(query=row["query"], verdict=row["verdict"], at=row["at"]) for row in rows
    )


def set_sensitive_allowed(
    connection: WriteTransaction, state: LaptopState, allowed: bool
) -> LaptopState:
    """Change whether sensitive memories travel, and requeue operations accordingly."""
    if state.place.sensitive == allowed:
        return state
    state = msgspec.structs.replace(
        state, place=msgspec.structs.replace(state.place, sensitive=allowed)
    )
    save(connection, state)
    sql = connection.sql("replica")
    keys = [row[0] for row in connection.execute(sql["once_sensitive"]).fetchall()]
    for key in keys:
        connection.execute(sql["withdraw"], {"key": key})
    for one in map(pending_of, connection.execute(sql["heals"]).fetchall()):
        replica = connection.execute(sql["by_id"], {"id": one.id}).fetchone()
        if replica is not None and core.is_withheld(
            server_bundle(connection, state, replica), allowed
        ):
            connection.execute(sql["dequeue"], {"op": one.op})
    prepare_memories(connection, keys, state.user, allowed)
    return state
