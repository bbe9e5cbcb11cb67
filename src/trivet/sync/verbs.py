"""What a user does with a store that follows a server: join, exchange now, look, decide, leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from trivet.contract import SyncStatusRequest
from trivet.errors import Conflict, NotFound, TrivetError
from trivet.memory.engine import Engine
from trivet.store.relational.database import Connection
from trivet.sync import core
from trivet.sync.client import HttpServer
from trivet.sync.join import join as begin
from trivet.sync.join import leave as end
from trivet.sync.keys import drop_key, keep_key, key_for, note_use
from trivet.sync.laptop import Laptop
from trivet.sync.preparing import prepare
from trivet.sync.refused import is_owner
from trivet.sync.round import Exchanged, exchange
from trivet.sync.sensitivity import agreed
from trivet.sync.state import LaptopState, load
from trivet.types import SyncStatus


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


def status(engine: Engine, ask: bool = True) -> SyncStatus:
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


def _told(connection: Connection, state: LaptopState) -> SyncStatus:
    sql = connection.sql("replica")
    size, oldest = tuple(connection.execute(sql["outbox_size"]).fetchone())
    local = int(connection.execute(sql["stays_local"]).fetchone()[0])
    return SyncStatus(
        server=state.url,
        user=state.user,
        contact=state.contact or None,
        outbox=size,
        oldest=oldest,
        refused=len(connection.execute(sql["parked"]).fetchall()),
        conflicts=int(connection.execute(sql["conflicts"]).fetchone()[0]),
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


def standing(engine: Engine, request: SyncStatusRequest) -> SyncStatus | None:
    """As the store itself knows it; None for other users of the store too, who follow nobody."""
    if not is_owner(engine) or load(engine.store.feed.database.read()) is None:
        return None
    return status(engine, ask=False)


def _prepared(engine: Engine, connection: Any) -> LaptopState:
    state = _state(engine)
    return prepare(connection, state, state.place.sensitive)


def _state(engine: Engine) -> LaptopState:
    state = load(engine.store.feed.database.read())
    if state is None:
        raise NotFound("This store follows no server. `TRIVET_KEY=KEY trivet sync join URL` makes it follow one.")
    return state
