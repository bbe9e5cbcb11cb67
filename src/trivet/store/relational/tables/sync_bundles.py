"""Memories with their whole history, as sync reads and writes them, and branches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trivet.common.ids import new_id
from trivet.common.threads import prepared_type
from trivet.memory_fields import as_json, to_memory, to_row
from trivet.store.records import (
    KNOWN_FIELDS,
    LOCAL_FIELDS,
    Bundle,
    Document,
    FeedbackRecord,
    Fields,
    LinkRecord,
    PendingEdit,
    Rev,
    ShareRecord,
    fields_of,
)
from trivet.store.relational.database import Connection, Database, Row, StorePart, WriteTransaction
from trivet.store.relational.tables.links import LinksExist, update_superseded_states
from trivet.store.relational.tables.memory_rows import (
    clear_derived,
    insert_memory,
    read_pending_edits,
    row_by_id,
    update_memory,
    with_branches,
    write_derived,
)
from trivet.types import Memory

# Analysis belongs to the layers above.
IndexMemory = Callable[[Memory], Document]

# A branch is settled, waits for a decision, or is unknown to the server.
SETTLED, WAITING, UNSENT = 0, 1, 2


def memory_at_revision(id: str, owner: str, rev: Rev) -> Memory:
    known = {name: value for name, value in rev.fields.items() if name in KNOWN_FIELDS}
    whole = {**known, "id": id, "owner": owner, "revision": rev.number, "updated_at": rev.at}
    return msgspec.convert(whole, prepared_type(Memory))


def name_revisions(
    connection: WriteTransaction, keys: Iterable[int], author: str | None = None
) -> None:
    """Name new revisions, with base and author.

    Keep the fields of a newer Trivet, which the writer could not know and so did not remove.
    """
    previous: tuple[int, str | None, str] = (0, None, "")
    for row in _rows(connection, "revisions_of", keys):
        base, before = previous[1:] if previous[0] == row["memory"] else (None, "")
        rev, snapshot = row["rev"], row["snapshot"]
        if rev is None:
            rev, snapshot = new_id(), _with_unknown(before, snapshot)
            names = {"key": row["memory"], "revision": row["revision"], "rev": rev, "base": base}
            names |= {"author": author or row["author"], "snapshot": snapshot}
            connection.execute(connection.sql("sync")["name_revision"], names)
        previous = (row["memory"], rev, snapshot)


def _with_unknown(before: str, snapshot: str) -> str:
    fields = msgspec.json.decode(before) if before else {}
    unknown = {
        name: value for name, value in fields.items() if name not in KNOWN_FIELDS | LOCAL_FIELDS
    }
    if not unknown:
        return snapshot
    return msgspec.json.encode({**unknown, **msgspec.json.decode(snapshot)}).decode()


def read_bundles(
    connection: Connection, keys: Sequence[int], viewer: str | None = None
) -> dict[int, Bundle]:
    """Return bundles, limited to a viewer; their revisions must be named."""
    memories = {row["key"]: row for row in _rows(connection, "memories_of", keys)}
    writable = (
        {row[0] for row in _rows(connection, "writable_of", keys, viewer=viewer)}
        if viewer
        else set()
    )
    trunks = _grouped(
        (row["memory"], rev_from_row(row)) for row in _rows(connection, "revisions_of", keys)
    )
    branches = _rows(connection, "branches_of", keys)
    shares = _grouped(
        (row[0], ShareRecord(grantee=row[1], permission=row[2]))
        for row in _rows(connection, "shares_of", keys)
    )
    links = _links(connection, keys, viewer)
    feedback = _feedback(connection, keys, viewer) if viewer else {}
    beside = _grouped((row["memory"], rev_from_row(row)) for row in branches)
    waiting = _grouped(
        (row["memory"], str(row["rev"])) for row in branches if row["waiting"] == WAITING
    )
    return {
        key: Bundle(
            id=row["id"],
            owner=row["owner"],
            trunk=tuple(trunks.get(key, ())),
            branches=tuple(beside.get(key, ())),
            waiting=tuple(waiting.get(key, ())),
            links=tuple(links.get(key, ())),
            shares=tuple(shares.get(key, ())) if viewer in (None, row["owner"]) else (),
            feedback=tuple(feedback.get(key, ())),
            access="own"
            if viewer in (None, row["owner"])
            else "write"
            if key in writable
            else "read",
        )
        for key, row in memories.items()
    }


def _links(
    connection: Connection, keys: Sequence[int], viewer: str | None
) -> dict[int, list[LinkRecord]]:
    rows = _rows(connection, "links_of", keys)
    ends = {row[0] for row in rows} | {row[1] for row in rows}
    seen = (
        {row[0] for row in _rows(connection, "seen_keys", ends, viewer=viewer)} if viewer else ends
    )
    links: dict[int, list[LinkRecord]] = {}
    for row in rows:
        if row[0] in seen and row[1] in seen:
            link = LinkRecord(source=row[2], kind=row[3], target=row[4], created_at=row[5])
            for key in {row[0], row[1]}:
                links.setdefault(key, []).append(link)
    return links


def _feedback(
    connection: Connection, keys: Sequence[int], viewer: str
) -> Mapping[int, list[FeedbackRecord]]:
    rows = [row for row in _rows(connection, "feedback_of", keys) if row["actor"] == viewer]
    return _grouped(
        (row["memory"], FeedbackRecord(query=row["query"], verdict=row["verdict"], at=row["at"]))
        for row in rows
    )


def put_bundle(
    connection: WriteTransaction,
    bundle: Bundle,
    owner: str,
    index: IndexMemory,
    unsent: Collection[str] = (),
    fresh: bool = False,
) -> int:
    """Write memory, revisions and branches, but not links and shares; return the key.

    Only this laptop knows the branches `unsent`. `fresh` promises that nothing of the memory
    exists, which saves all lookups in a first sync.
    """
    row = None if fresh else row_by_id(connection, bundle.id)
    memory = memory_at_revision(bundle.id, owner, bundle.head)
    document = index(memory)
    key = (
        int(row["key"])
        if row is not None
        else insert_memory(connection, to_row(memory, document.row_values))
    )
    _put_revisions(connection, key, bundle, owner, fresh)
    changes = not fresh or bool(bundle.branches)
    branched = changes and _put_branches(connection, key, bundle, owner, index, unsent)
    if row is None or branched or _without_superseded(to_memory(row)) != memory:
        if row is not None:
            update_memory(connection, key, memory, document)
            clear_derived(connection, key)
        write_derived(
            connection,
            key,
            memory,
            with_branches(connection, key, document) if changes else document,
        )
        if not fresh:
            update_superseded_states(connection, key)
    return key


def _without_superseded(memory: Memory) -> Memory:
    return (
        msgspec.structs.replace(memory, state="active") if memory.state == "superseded" else memory
    )


def _put_revisions(
    connection: WriteTransaction, key: int, bundle: Bundle, owner: str, fresh: bool
) -> None:
    sql = connection.sql("sync")
    known = (
        {} if fresh else {row["revision"]: row for row in _rows(connection, "revisions_of", [key])}
    )
    wanted = {rev.number: rev for rev in bundle.trunk}
    for number, row in known.items():
        if number not in wanted or not _same(row, wanted[number], bundle.id, owner):
            connection.execute(sql["delete_revision"], {"key": key, "revision": number})
    for number, rev in wanted.items():
        if number not in known or not _same(known[number], rev, bundle.id, owner):
            values = {"key": key, "revision": number, "changed_at": rev.at, "action": rev.action}
            names = {"rev": rev.rev, "base": rev.base, "author": rev.author}
            snapshot = _snapshot(bundle.id, owner, rev)
            connection.put("memories", "insert_revision", {**values, **names, "snapshot": snapshot})


def _same(row: Row, rev: Rev, id: str, owner: str) -> bool:
    return (
        rev_from_row(row) == rev
        and (row["base"], row["author"]) == (rev.base, rev.author)
        and _owner(row) == (id, owner)
    )


def _owner(row: Row) -> tuple[str, str]:
    snapshot = msgspec.json.decode(row["snapshot"])
    return snapshot["id"], snapshot.get("owner", "")


def _put_branches(
    connection: WriteTransaction,
    key: int,
    bundle: Bundle,
    owner: str,
    index: IndexMemory,
    unsent: Collection[str],
) -> bool:
    """Return whether the memory's search terms change."""
    sql = connection.sql("sync")
    known = {row["rev"]: row for row in _rows(connection, "branches_of", [key])}
    changed = False
    for rev in known.keys() - {one.rev for one in bundle.branches}:
        connection.execute(sql["delete_branch"], {"key": key, "rev": rev})
        changed = True
    for one in bundle.branches:
        waiting = UNSENT if one.rev in unsent else WAITING if one.rev in bundle.waiting else SETTLED
        row = known.get(one.rev)
        if row is None or row["waiting"] != waiting or rev_from_row(row).fields != one.fields:
            terms = index(memory_at_revision(bundle.id, owner, one))
            values = {
                "key": key,
                "rev": one.rev,
                "base": one.base,
                "author": one.author,
                "changed_at": one.at,
            }
            words = " ".join((*terms.content, *terms.title))
            snapshot = _snapshot(bundle.id, owner, one)
            connection.execute(
                sql["put_branch"],
                {
                    **values,
                    "action": one.action,
                    "snapshot": snapshot,
                    "waiting": waiting,
                    "terms": words,
                },
            )
            changed = True
    return changed


def _snapshot(id: str, owner: str, rev: Rev) -> str:
    whole = {**rev.fields, "id": id, "owner": owner, "revision": rev.number, "updated_at": rev.at}
    return msgspec.json.encode(whole).decode()


def rev_from_row(row: Row) -> Rev:
    snapshot: Fields = msgspec.json.decode(row["snapshot"])
    return Rev(
        rev=row["rev"],
        base=row["base"],
        author=row["author"],
        at=row["changed_at"],
        action=row["action"],
        fields=fields_of(snapshot),
        number=row["revision"],
    )


def bundle_digest(bundle: Bundle, *more: object) -> str:
    """Return a digest of what laptops must know; feedback is per user and excluded."""
    fields = {
        "type": "memory",
        **msgspec.structs.asdict(bundle),
        "seq": 0,
        "epoch": "",
        "access": "own",
    }
    del fields["feedback"]
    return hashlib.blake2b(msgspec.json.encode([fields, more]), digest_size=16).hexdigest()


def head_digests(heads: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a digest of the heads in each of 256 buckets."""
    listed: dict[str, list[str]] = {}
    for id, rev in heads:
        listed.setdefault(hashlib.blake2b(id.encode(), digest_size=1).hexdigest(), []).append(
            f"{id} {rev}"
        )
    return {
        bucket: hashlib.blake2b("\n".join(sorted(lines)).encode(), digest_size=8).hexdigest()
        for bucket, lines in sorted(listed.items())
    }


def _rows(connection: Connection, name: str, keys: Iterable[int], **values: Any) -> list[Any]:
    return connection.execute(
        connection.sql("sync")[name], {"keys": as_json(keys), **values}
    ).fetchall()


def _grouped(pairs: Iterable[tuple[int, Any]]) -> Mapping[int, list[Any]]:
    groups: dict[int, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


class BranchesExist(LinksExist):
    """A cached answer to whether the store has branches; few have."""

    file = "sync"
    query = "any_branch"


class Branches(StorePart):
    file = "sync"

    def __init__(self, database: Database, branches_exist: BranchesExist) -> None:
        super().__init__(database)
        self._branches_exist = branches_exist

    def waiting(self, ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        if not self._branches_exist():
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for row in self._rows("waiting_branches", ids=as_json(ids)):
            found[row[0]] = (*found.get(row[0], ()), row[1])
        return found

    def clashing(self, id: str | None, limit: int) -> list[tuple[str, Rev]]:
        if not self._branches_exist():
            return []
        rows = self._rows("clashing", id=id or "", limit=limit, viewer=self._database.viewer)
        return [(row["id"], rev_from_row(row)) for row in rows]

    def beside(self, memory: Memory) -> tuple[PendingEdit, ...]:
        with self._database.errors():
            return read_pending_edits(self._database.read(), memory)
