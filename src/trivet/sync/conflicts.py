"""Conflicting edits and their resolution, and operations that a server refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trivet.common.ids import check_id
from trivet.contract import SyncConflicts, SyncDrop, SyncRefused, SyncResolve
from trivet.errors import InvalidInput, NotFound
from trivet.memory.engine import Engine
from trivet.memory.lifecycle import difference
from trivet.memory.remember import document_of, rewrite
from trivet.secrets.masking import MASK, masked
from trivet.settings.locations import is_file
from trivet.store.records import KNOWN_FIELDS, OWNER_ONLY_FIELDS, Bundle, Rev, changes_between
from trivet.store.relational.database import Row, WriteTransaction
from trivet.store.relational.tables.ledgers import record_write
from trivet.store.relational.tables.memory_rows import clear_derived, key_by_id, write_derived
from trivet.store.relational.tables.sync_bundles import (
    SETTLED,
    memory_at_revision,
    name_revisions,
    read_bundles,
)
from trivet.sync.laptop_state import Detail, enqueue, load
from trivet.sync.messages import Op
from trivet.sync.outgoing import enqueue_changes
from trivet.sync.replica import WRITTEN_WHILE_SENSITIVE
from trivet.types import LOCAL, EditConflict, Memory, RefusedOperation

HEAD = "head"
NAME_CHARACTERS = 120


def conflicts(engine: Engine, request: SyncConflicts) -> tuple[EditConflict, ...]:
    """Return the conflicts of memories that the caller may read."""
    id = engine.store.memories.get(check_id(request.id)).id if request.id is not None else None
    clashing = engine.store.branches.clashing(id, request.limit)
    heads = engine.store.memories.get_many(list({id for id, _ in clashing}))
    return tuple(
        _edit_conflict(engine, heads[id], rev, request.reveal)
        for id, rev in clashing
        if id in heads
    )


def _edit_conflict(engine: Engine, memory: Memory, rev: Rev, reveal: bool) -> EditConflict:
    edited = memory_at_revision(memory.id, memory.owner, rev)
    names = [
        name for name in sorted(KNOWN_FIELDS) if getattr(edited, name) != getattr(memory, name)
    ]
    sensitive = memory.sensitive or edited.sensitive  # one sensitive side masks both
    head, branch = (
        masked(msgspec.structs.replace(one, sensitive=sensitive), reveal, engine.viewer)
        for one in (memory, edited)
    )
    return EditConflict(
        id=memory.id,
        name=name_of(head),
        rev=rev.rev,
        author=rev.author or memory.owner,
        at=rev.at,
        head=_fields(head, names),
        branch=_fields(branch, names),
        diff=difference(head, branch, "the memory", "the edit"),
        masked=sensitive and branch.content == MASK,
    )


def name_of(memory: Memory) -> str:
    return memory.title or memory.content[:NAME_CHARACTERS]


def _fields(memory: Memory, names: list[str]) -> Mapping[str, Any]:
    return {name: msgspec.to_builtins(getattr(memory, name)) for name in names}


def resolve(engine: Engine, request: SyncResolve) -> Memory:
    """Settle a memory's conflicts: keep its text, or take a branch's or a new one."""
    id = check_id(request.id)
    with engine.store.feed.transaction() as connection:
        old = engine.store.memories.get_for_change(id, "edit")
        key = key_by_id(connection, id)
        assert key is not None, "just read"
        bundle = _prepared(connection, key)
        if not bundle.waiting:
            raise NotFound(
                f"Memory {id} has no conflict to resolve. `trivet sync conflicts` lists the "
                "conflicts."
            )
        chosen = _chosen_fields(bundle, request)
        if chosen is not None:
            new = memory_at_revision(
                id,
                old.owner,
                msgspec.structs.replace(bundle.head, fields=chosen, number=old.revision),
            )
            rewrite(
                engine,
                msgspec.structs.replace(new, updated_at=old.updated_at, state=old.state),
                "resolve",
                old,
            )
        _settle_branches(engine, connection, key, bundle)
        _propagate(engine, connection, key, bundle)
        return masked(engine.store.memories.get(id))


def _prepared(connection: WriteTransaction, key: int) -> Bundle:
    laptop = load(connection)
    if laptop is not None:
        enqueue_changes(connection, laptop, laptop.place.sensitive)
    else:
        name_revisions(connection, [key])
    return read_bundles(connection, [key])[key]


def _chosen_fields(bundle: Bundle, request: SyncResolve) -> dict[str, Any] | None:
    """Return the new fields, or None to keep the memory as it is."""
    if request.content is not None:
        return {**bundle.head.fields, "content": request.content}
    take = request.take
    if take == HEAD:
        return None
    found: list[Rev] = [
        rev for rev in bundle.branches if rev.rev in bundle.waiting and rev.rev.startswith(take)
    ]
    if len(found) != 1:
        raise InvalidInput(
            f"--take: {take!r} matches {len(found)} branches. Use head, or a rev from `trivet sync "
            "conflicts`."
        )
    return {**bundle.head.fields, **_changed(bundle, found[0])}


def _changed(bundle: Bundle, branch: Rev) -> Mapping[str, Any]:
    """Return only what the branch changed, so that later changes stay."""
    if branch.base is None:
        return branch.fields
    base = bundle.revs.get(branch.base)
    if base is not None:
        return changes_between(base.fields, branch.fields)
    return {name: value for name, value in branch.fields.items() if name not in OWNER_ONLY_FIELDS}


def _settle_branches(
    engine: Engine, connection: WriteTransaction, key: int, bundle: Bundle
) -> None:
    for rev in bundle.waiting:
        values = {"waiting": SETTLED, "key": key, "rev": rev}
        connection.execute(connection.sql("sync")["settle_branch"], values)
    memory = engine.store.memories.get(bundle.id)
    clear_derived(connection, key)
    write_derived(connection, key, memory, document_of(memory))


def _propagate(engine: Engine, connection: WriteTransaction, key: int, bundle: Bundle) -> None:
    laptop = load(connection)
    if laptop is not None:
        enqueue_changes(connection, laptop, laptop.place.sensitive)
        enqueue(connection, "resolve", bundle.id, key, Detail(revs=bundle.waiting))
    else:
        connection.note_change(key)
        record_write(connection, engine.viewer, "sync resolve", [bundle.id])


_TEXT_FIELDS = ("content", "title", "expanded_keywords", "source")


def refused(engine: Engine, request: SyncRefused) -> tuple[RefusedOperation, ...]:
    """Return refused operations, masked if sensitive, even after leaving the server."""
    if not is_owner(engine):
        return ()
    connection = engine.store.feed.database.read()
    rows = connection.execute(connection.sql("replica")["parked"]).fetchall()
    memories = engine.store.memories.get_many(list({row["id"] for row in rows}))
    return tuple(_refused_operation(row, memories.get(row["id"]), request.reveal) for row in rows)


def _refused_operation(row: Row, memory: Memory | None, reveal: bool) -> RefusedOperation:
    op = msgspec.json.decode(row["body"], type=Op)
    fields: Mapping[str, Any] = op.fields or {
        one.query or "it was": one.verdict for one in op.feedback
    }
    sensitive = (
        fields.get("sensitive")
        or row["reason"] == WRITTEN_WHILE_SENSITIVE
        or (memory and memory.sensitive)
    )
    hides = bool(sensitive) and not reveal
    if hides:
        fields = {
            name: MASK if name in _TEXT_FIELDS and value else value
            for name, value in fields.items()
        }
    return RefusedOperation(
        op=row["op"],
        kind=row["kind"],
        id=row["id"],
        name=name_of(masked(memory, reveal, LOCAL)) if memory else None,
        at=row["at"],
        reason=row["reason"],
        said=fields,
        masked=hides,
    )


def drop_refused(engine: Engine, request: SyncDrop) -> None:
    with engine.store.feed.transaction() as connection:
        values = {"op": request.op}
        if (
            not is_owner(engine)
            or not connection.execute(connection.sql("replica")["unpark"], values).rowcount
        ):
            raise NotFound(f"No refused operation {request.op}. `trivet sync refused` lists them.")


def is_owner(engine: Engine) -> bool:
    """Return whether the caller may use sync: only a store file's owner can."""
    return is_file(engine.settings.path) and engine.viewer in (None, LOCAL)
