"""The user's actions on a store that follows a server.

Keys are in a private file next to the settings, so a backup or copy of the store opens no server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from trivet.common.files import atomic_write, private_folder
from trivet.contract import SyncStatusRequest
from trivet.errors import Conflict, NotFound, TrivetError, Unauthorised
from trivet.memory.engine import Engine
from trivet.settings import Settings, config_path
from trivet.store.relational.database import Connection
from trivet.store.relational.tables.sync_bundles import head_digests
from trivet.sync import core
from trivet.sync.conflicts import is_owner
from trivet.sync.exchange import Exchanged, HttpServer, exchange
from trivet.sync.laptop import Laptop
from trivet.sync.laptop import join as begin
from trivet.sync.laptop import leave as end
from trivet.sync.laptop_state import LaptopState, load
from trivet.sync.outgoing import enqueue_changes, set_sensitive_allowed
from trivet.types import SyncStatus


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    level: bool
    buckets: int
    different: int
    outbox: int


def join(engine: Engine, url: str, scopes: Sequence[str] | None = None) -> LaptopState:
    """Join as the key's user; with `scopes` the store holds only those."""
    url = url.rstrip("/")
    server = HttpServer(engine.settings, url, engine.settings.key)
    try:
        hello = server.hello()
    finally:
        server.close()
    sensitive = hello.sensitive and engine.settings.sync_sensitive
    state = begin(engine, url, hello.user, sensitive, scopes)
    keep_key(url, hello.user, engine.settings.key)
    record_use(url, hello.user, engine.settings.path)
    return state


def leave(engine: Engine) -> LaptopState:
    state = _state(engine)
    end(engine)
    drop_key(state.url, state.user, engine.settings.path)
    return state


def sync_now(engine: Engine) -> Exchanged:
    server = connect(engine)
    try:
        return exchange(Laptop(engine), server)
    finally:
        server.close()


def connect(engine: Engine) -> HttpServer:
    state = _state(engine)
    key = key_for(engine.settings, state.url, state.user)
    server = HttpServer(engine.settings, state.url, key)
    hello = server.hello()
    if hello.user != state.user:
        server.close()
        raise Conflict(
            f"The key belongs to {hello.user}, but this store follows {state.url} as "
            f"{state.user}. Give that user's key as TRIVET_KEY."
        )
    if engine.settings.key:
        keep_key(state.url, state.user, key)
    record_use(state.url, state.user, engine.settings.path)
    _apply_sensitive_setting(engine, hello.sensitive and engine.settings.sync_sensitive)
    return server


def _apply_sensitive_setting(engine: Engine, allowed: bool) -> None:
    with engine.store.feed.transaction() as connection:
        state = load(connection)
        if state is not None:
            set_sensitive_allowed(connection, state, allowed)


def status(engine: Engine, ask: bool = True) -> SyncStatus:
    """Return the sync status; with `ask`, compare with the server or say why that failed."""
    with engine.store.feed.transaction() as connection:
        state = _prepared(engine, connection)
        found = _status_of(connection, state)
    if not ask:
        return found
    try:
        return msgspec.structs.replace(found, level=verify(engine).level)
    except TrivetError as error:
        return msgspec.structs.replace(found, trouble=str(error))


def _status_of(connection: Connection, state: LaptopState) -> SyncStatus:
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
        why_local="sensitive memories stay on their machine unless both sides set sync_sensitive"
        if local
        else "",
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
    ours = head_digests((row[0], row[1]) for row in rows if core.in_scopes(row[2], scopes))
    different = sum(
        ours.get(bucket) != theirs.get(bucket) for bucket in ours.keys() | theirs.keys()
    )
    return Verified(
        level=not different and not waiting, buckets=256, different=different, outbox=waiting
    )


def standing(engine: Engine, request: SyncStatusRequest) -> SyncStatus | None:
    """Return the status without asking the server; None if the store follows none."""
    if not is_owner(engine) or load(engine.store.feed.database.read()) is None:
        return None
    return status(engine, ask=False)


def _prepared(engine: Engine, connection: Any) -> LaptopState:
    state = _state(engine)
    return enqueue_changes(connection, state, state.place.sensitive)


def _state(engine: Engine) -> LaptopState:
    state = load(engine.store.feed.database.read())
    if state is None:
        raise NotFound(
            "This store follows no server. Run `TRIVET_KEY=KEY trivet sync join URL` to follow one."
        )
    return state


_FILE = "sync-keys.json"
_STORES = "sync-stores.json"

T = TypeVar("T")


def key_for(settings: Settings, url: str, user: str) -> str:
    """Return the configured key, else the one used to join."""
    key = settings.key or _read_keys().get(f"{user}@{url}", "")
    if not key:
        raise Unauthorised(
            f"The key of {user} at {url} is not on this machine. Give it once: TRIVET_KEY=KEY "
            "trivet sync now."
        )
    return key


def keep_key(url: str, user: str, key: str) -> None:
    if _read_keys().get(f"{user}@{url}") != key:
        _write(_FILE, {**_read_keys(), f"{user}@{url}": key})


def record_use(url: str, user: str, store: str) -> None:
    """Note that a store uses this key: another store's leave must not delete it."""
    users, path = _read_users(), str(Path(store).resolve())
    if path not in users.get(f"{user}@{url}", ()):
        _write(_STORES, {**users, f"{user}@{url}": [*users.get(f"{user}@{url}", ()), path]})


def drop_key(url: str, user: str, store: str) -> None:
    """Delete the key, unless another existing store uses it."""
    name, users, path = f"{user}@{url}", _read_users(), str(Path(store).resolve())
    left = [one for one in users.pop(name, ()) if one != path and Path(one).exists()]
    _write(_STORES, {**users, name: left} if left else users)
    if not left:
        _write(_FILE, {known: key for known, key in _read_keys().items() if known != name})


def _read_keys() -> dict[str, str]:
    return _read(_FILE, dict[str, str])


def _read_users() -> dict[str, list[str]]:
    return _read(_STORES, dict[str, list[str]])


def _read(name: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode((config_path().parent / name).read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError):
        return kind()


def _write(name: str, value: object) -> None:
    private_folder(config_path().parent)
    with atomic_write(config_path().parent / name) as stream:
        stream.write(msgspec.json.encode(value))
