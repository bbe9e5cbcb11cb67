"""What a user does with a store that follows a server: join, exchange now, look, decide, leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trivet.errors import Conflict, InvalidInput, NotFound, TrivetError
from trivet.memory.engine import Engine
from trivet.memory.remember import document_of, rewrite
from trivet.store.relational.bundles import SETTLED, memory_of, read_bundles
from trivet.store.relational.database import Connection
from trivet.store.relational.memories import clear_derived, write_derived
from trivet.store.sync_records import OWNERS_FIELDS, Bundle, Rev, changes_between
from trivet.sync import core
from trivet.sync.client import HttpServer
from trivet.sync.join import join as begin
from trivet.sync.join import leave as end
from trivet.sync.keys import drop_key, keep_key, key_for, note_use
from trivet.sync.laptop import Laptop
from trivet.sync.messages import Op
from trivet.sync.outbox import Detail, enqueue
from trivet.sync.preparing import prepare
from trivet.sync.round import Exchanged, exchange
from trivet.sync.sensitivity import agreed
from trivet.sync.state import LaptopState, load

HEAD = "head"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How far a laptop is from its server. `level` is None where the server was not asked."""

    server: str
    user: str
    contact: str | None
    outbox: int
    oldest: str | None
    refused: int
    conflicts: int
    stays_local: int
    why_local: str
    hidden: bool
    full_pull: bool
    scopes: tuple[str, ...] = ()
    level: bool | None = None
    trouble: str | None = None


class ConflictTold(msgspec.Struct, frozen=True, kw_only=True):
    """An edit that clashed: what the memory says, what the edit says, and whose it is."""

    id: str
    rev: str
    author: str
    at: str
    head: Mapping[str, Any]
    branch: Mapping[str, Any]


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    op: str
    kind: str
    id: str
    at: str
    reason: str
    said: Mapping[str, Any]


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the digests of all buckets match, and in how many they do not."""

    level: bool
    buckets: int
    different: int
    outbox: int


def join(engine: Engine, url: str, scopes: Sequence[str] | None = None) -> LaptopState:
    """As whoever the key belongs to. With `scopes` the store holds what is in these, and the server the rest."""
    url = url.rstrip("/")
    server = HttpServer(engine.settings, url, engine.settings.key)
    try:
        told = server.hello()
    finally:
        server.close()
    state = begin(engine, url, told.user, told.sensitive and engine.settings.sync_sensitive, scopes)
    keep_key(url, told.user, engine.settings.key)
    note_use(url, told.user, engine.settings.path)
    return state


def leave(engine: Engine) -> LaptopState:
    state = _state(engine)
    end(engine)
    drop_key(state.url, state.user, engine.settings.path)
    return state


def synced_now(engine: Engine) -> Exchanged:
    server = connect(engine)
    try:
        return exchange(Laptop(engine), server)
    finally:
        server.close()


def connect(engine: Engine) -> HttpServer:
    state = _state(engine)
    key = key_for(engine.settings, state.url, state.user)
    server = HttpServer(engine.settings, state.url, key)
    told = server.hello()
    if told.user != state.user:
        server.close()
        raise Conflict(f"The key is {told.user}'s, and this store follows {state.url} as {state.user}.")
    if engine.settings.key:
        keep_key(state.url, state.user, key)
    note_use(state.url, state.user, engine.settings.path)
    _agree(engine, told.sensitive and engine.settings.sync_sensitive)
    return server


def _agree(engine: Engine, allowed: bool) -> None:
    with engine.store.feed.transaction() as connection:
        state = load(connection)
        if state is not None:
            agreed(connection, state, allowed)


def status(engine: Engine, ask: bool = True) -> Status:
    """With `ask` the server is asked whether both hold the same; if it cannot be, the reason is told."""
    with engine.store.feed.transaction() as connection:
        state = _prepared(engine, connection)
        told = _told(connection, state)
    if not ask:
        return told
    try:
        return msgspec.structs.replace(told, level=verify(engine).level)
    except TrivetError as error:
        return msgspec.structs.replace(told, trouble=str(error))


def _told(connection: Connection, state: LaptopState) -> Status:
    sql = connection.sql("replica")
    size, oldest = tuple(connection.execute(sql["outbox_size"]).fetchone())
    local = int(connection.execute(sql["stays_local"]).fetchone()[0])
    return Status(
        server=state.url,
        user=state.user,
        contact=state.contact or None,
        outbox=size,
        oldest=oldest,
        refused=len(connection.execute(sql["parked"]).fetchall()),
        conflicts=len(connection.execute(sql["conflicts"]).fetchall()),
        stays_local=local,
        why_local="sensitive memories stay on their machine unless both sides set sync_sensitive" if local else "",
        hidden=state.hidden,
        full_pull=state.full,
        scopes=state.place.scopes,
    )


def verify(engine: Engine) -> Verified:
    server = connect(engine)
    try:
        theirs = server.digests(_state(engine).place.scopes)
    finally:
        server.close()
    with engine.store.feed.transaction() as connection:
        scopes = _prepared(engine, connection).place.scopes
        sql = connection.sql("replica")
        rows = connection.execute(sql["heads"]).fetchall()
        waiting = int(connection.execute(sql["outbox_size"]).fetchone()[0])
    ours = core.buckets((row[0], row[1]) for row in rows if core.in_scopes(row[2], scopes))
    different = sum(ours.get(bucket) != theirs.get(bucket) for bucket in ours.keys() | theirs.keys())
    return Verified(level=not different and not waiting, buckets=256, different=different, outbox=waiting)


def refused(engine: Engine) -> tuple[Refused, ...]:
    """Also of a store that has left its server."""
    connection = engine.store.feed.database.read()
    rows = connection.execute(connection.sql("replica")["parked"]).fetchall()
    if not rows:
        _state(engine)
    return tuple(
        Refused(
            op=row["op"],
            kind=row["kind"],
            id=row["id"],
            at=row["at"],
            reason=row["reason"],
            said=_said(msgspec.json.decode(row["body"], type=Op)),
        )
        for row in rows
    )


def _said(op: Op) -> Mapping[str, Any]:
    return op.fields or {one.query or "it was": one.verdict for one in op.feedback}


def drop_refused(engine: Engine, op: str) -> None:
    """The user has seen it and lets go of it."""
    with engine.store.feed.transaction() as connection:
        if not connection.execute(connection.sql("replica")["unpark"], {"op": op}).rowcount:
            raise NotFound(f"No operation {op} was refused. `trivet sync refused` lists those that were.")


def conflicts(engine: Engine) -> tuple[ConflictTold, ...]:
    _state(engine)
    connection = engine.store.feed.database.read()
    rows = connection.execute(connection.sql("replica")["conflicts"]).fetchall()
    told = []
    for row in rows:
        bundle = _bundle(connection, row["id"])
        branch, head = bundle.revs[row["rev"]], bundle.head
        names = [name for name in branch.fields if branch.fields[name] != head.fields.get(name)]
        told.append(
            ConflictTold(
                id=row["id"],
                rev=row["rev"],
                author=row["author"] or bundle.owner,
                at=row["changed_at"],
                head={name: head.fields.get(name) for name in names},
                branch={name: branch.fields[name] for name in names},
            )
        )
    return tuple(told)


def resolve(engine: Engine, id: str, take: str = HEAD, content: str | None = None) -> None:
    """The memory as it is, one of its branches, or another text; its conflicts are settled by that."""
    with engine.store.feed.transaction() as connection:
        state = _prepared(engine, connection)
        bundle = _bundle(connection, engine.store.memories.get_for(id, "edit").id)
        if not bundle.waiting:
            raise NotFound(f"Memory {id} has no conflict to resolve. `trivet sync conflicts` lists those that have.")
        chosen = _chosen(bundle, take, content)
        if chosen is not None:
            old = engine.store.memories.get(id)
            new = memory_of(id, old.owner, msgspec.structs.replace(bundle.head, fields=chosen, number=old.revision))
            rewrite(engine, msgspec.structs.replace(new, updated_at=old.updated_at, state=old.state), "resolve", old)
        key = int(connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()["key"])
        _settle(engine, connection, key, bundle)
        state = prepare(connection, state, state.place.sensitive)
        enqueue(connection, "resolve", id, key, Detail(revs=bundle.waiting))


def _chosen(bundle: Bundle, take: str, content: str | None) -> dict[str, Any] | None:
    """What the memory is to say; None where it stays as it is."""
    if content is not None:
        return {**bundle.head.fields, "content": content}
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


def _settle(engine: Engine, connection: Any, key: int, bundle: Bundle) -> None:
    for rev in bundle.waiting:
        values = {"waiting": SETTLED, "key": key, "rev": rev}
        connection.execute(connection.sql("replica")["settle_branch"], values)
    memory = engine.store.memories.get(bundle.id)
    clear_derived(connection, key)
    write_derived(connection, key, memory, document_of(memory))


def _bundle(connection: Connection, id: str) -> Bundle:
    row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
    key = int(row["key"])
    return read_bundles(connection, [key])[key]


def _prepared(engine: Engine, connection: Any) -> LaptopState:
    state = _state(engine)
    return prepare(connection, state, state.place.sensitive)


def _state(engine: Engine) -> LaptopState:
    state = load(engine.store.feed.database.read())
    if state is None:
        raise NotFound("This store follows no server. `TRIVET_KEY=KEY trivet sync join URL` makes it follow one.")
    return state
