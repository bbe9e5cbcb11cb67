"""Edits that clashed and lie beside a memory: what each says, and which of them the memory is to say.

They are on the server and on every laptop that holds the memory, and are decided at any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trivet.contract import SyncConflicts, SyncResolve
from trivet.errors import InvalidInput, NotFound
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.memory.lifecycle import difference
from trivet.memory.remember import document_of, rewrite
from trivet.secrets import MASK, masked
from trivet.store.relational.audit import note_write
from trivet.store.relational.bundles import SETTLED, memory_of, name_revisions, read_bundles
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.derived import clear_derived, write_derived
from trivet.store.sync_records import KNOWN_FIELDS, OWNERS_FIELDS, Bundle, Rev, changes_between
from trivet.sync.outbox import Detail, enqueue
from trivet.sync.preparing import prepare
from trivet.sync.state import load
from trivet.types import EditConflict, Memory

HEAD = "head"
NAME_CHARACTERS = 120


def conflicts(engine: Engine, request: SyncConflicts) -> tuple[EditConflict, ...]:
    """Of memories that the caller may read."""
    id = engine.store.memories.get(check_id(request.id)).id if request.id is not None else None
    beside = engine.store.branches.clashing(id, request.limit)
    heads = engine.store.memories.get_many(list({id for id, _ in beside}))
    return tuple(_told(engine, heads[id], rev, request.reveal) for id, rev in beside if id in heads)


def _told(engine: Engine, memory: Memory, rev: Rev, reveal: bool) -> EditConflict:
    """Where the memory or the edit is sensitive, both are masked alike."""
    edited = memory_of(memory.id, memory.owner, rev)
    names = [name for name in sorted(KNOWN_FIELDS) if getattr(edited, name) != getattr(memory, name)]
    sensitive = memory.sensitive or edited.sensitive
    head, branch = (
        masked(msgspec.structs.replace(one, sensitive=sensitive), reveal, engine.viewer) for one in (memory, edited)
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
    """The memory as it is, one of its branches, or another text; its conflicts are settled by that."""
    id = check_id(request.id)
    with engine.store.feed.transaction() as connection:
        old = engine.store.memories.get_for(id, "edit")
        key = int(connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()["key"])
        bundle = _prepared(connection, key)
        if not bundle.waiting:
            raise NotFound(f"Memory {id} has no conflict to resolve. `trivet sync conflicts` lists those that have.")
        chosen = _chosen(bundle, request)
        if chosen is not None:
            new = memory_of(id, old.owner, msgspec.structs.replace(bundle.head, fields=chosen, number=old.revision))
            rewrite(engine, msgspec.structs.replace(new, updated_at=old.updated_at, state=old.state), "resolve", old)
        _settle(engine, connection, key, bundle)
        _tell(engine, connection, key, bundle)
        return masked(engine.store.memories.get(id))


def _prepared(connection: WriteTransaction, key: int) -> Bundle:
    """Every revision has its name; on a laptop, what was written before has its place in the outbox too."""
    laptop = load(connection)
    if laptop is not None:
        prepare(connection, laptop, laptop.place.sensitive)
    else:
        name_revisions(connection, [key])
    return read_bundles(connection, [key])[key]


def _chosen(bundle: Bundle, request: SyncResolve) -> dict[str, Any] | None:
    """What the memory is to say; None where it stays as it is."""
    if request.content is not None:
        return {**bundle.head.fields, "content": request.content}
    take = request.take
    if take == HEAD:
        return None
    found: list[Rev] = [rev for rev in bundle.branches if rev.rev in bundle.waiting and rev.rev.startswith(take)]
    if len(found) != 1:
        raise InvalidInput(f"--take: {take!r} names {len(found)} branches. Say head, or a rev of `sync conflicts`.")
    return {**bundle.head.fields, **_changed(bundle, found[0])}


def _changed(bundle: Bundle, branch: Rev) -> Mapping[str, Any]:
    """What an edit changed, so that what others changed since stays: tags that were taken away share no more.

    Where it is unknown from what it was made, it is taken by its words alone. One that was made from nothing says all.
    """
    if branch.base is None:
        return branch.fields
    base = bundle.revs.get(branch.base)
    if base is not None:
        return changes_between(base.fields, branch.fields)
    return {name: value for name, value in branch.fields.items() if name not in OWNERS_FIELDS}


def _settle(engine: Engine, connection: WriteTransaction, key: int, bundle: Bundle) -> None:
    for rev in bundle.waiting:
        values = {"waiting": SETTLED, "key": key, "rev": rev}
        connection.execute(connection.sql("sync")["settle_branch"], values)
    memory = engine.store.memories.get(bundle.id)
    clear_derived(connection, key)
    write_derived(connection, key, memory, document_of(memory))


def _tell(engine: Engine, connection: WriteTransaction, key: int, bundle: Bundle) -> None:
    """A laptop tells its server at the next exchange; a server tells the laptops that follow it."""
    laptop = load(connection)
    if laptop is not None:
        prepare(connection, laptop, laptop.place.sensitive)
        enqueue(connection, "resolve", bundle.id, key, Detail(revs=bundle.waiting))
    else:
        connection.note_change(key)
        note_write(connection, engine.viewer, "sync resolve", [bundle.id])
