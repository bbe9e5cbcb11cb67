"""The server's side of sync: applies laptops' operations and sends users the changes.

An operation and the note that it was done are one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import msgspec

from trivet.errors import StoreError
from trivet.memory.engine import Engine
from trivet.memory_fields import as_json
from trivet.store.records import ShareRecord
from trivet.store.relational.database import Connection, WriteTransaction
from trivet.store.relational.tables.memory_rows import key_by_id
from trivet.store.relational.tables.sync_bundles import head_digests, read_bundles
from trivet.store.relational.tables.sync_feed import FeedEvent, ServerState
from trivet.sync import core
from trivet.sync.apply_ops import OpApplier, Outcome, PushProgress
from trivet.sync.messages import (
    Ack,
    Acks,
    Answer,
    Gone,
    Item,
    Op,
    OtherEpoch,
    Outside,
    Page,
    Place,
    Purged,
    Withheld,
)

# Below the server's request limit; a large store is numbered over several requests.
NUMBERING_SECONDS = 10.0
NUMBERING = (
    "The server is still numbering its memories for the first laptop. The operation is sent again."
)


def push(engine: Engine, place: Place, ops: Sequence[Op]) -> Answer:
    """Apply all operations in one transaction, or each in its own if the store rejects that."""
    engine = _with_sensitive_setting(engine, place)
    try:
        return _push(engine, place, ops, PushProgress())
    except StoreError:
        if len(ops) == 1:
            raise
    acks: list[Ack] = []
    progress = PushProgress()
    tags: tuple[ShareRecord, ...] | None = None
    for op in ops:
        trial = progress.copied()  # a rollback reassigns no id
        try:
            answer = _push(engine, place, [op], trial)
        except StoreError as error:
            progress.waiting.add(op.id)
            acks.append(Ack(op=op.op, result="later", id=op.id, reason=str(error)))
            continue
        if not isinstance(answer, Acks):
            return answer
        progress = trial
        acks += answer.acks
        place, tags = answer.place, answer.tags or tags
    return Acks(place=place, acks=tuple(acks), tags=tags)


def _push(engine: Engine, place: Place, ops: Sequence[Op], progress: PushProgress) -> Answer:
    feed = engine.store.feed
    if _catch_up(engine).unfinished:
        acks = tuple(Ack(op=op.op, result="later", id=op.id, reason=NUMBERING) for op in ops)
        return Acks(place=place, acks=acks)
    with feed.transaction() as connection:
        state = _check_epoch(engine, connection, place)
        if isinstance(state, OtherEpoch):
            return state
        pushed = OpApplier(engine, connection, progress)
        outcomes = [pushed.take(op) for op in ops]
        tagged = any(op.kind in ("share_tag", "unshare_tag") for op in ops)
        state = feed.number(connection, marks=tagged)
        for id, seq in pushed.healed.items():
            connection.execute(connection.sql("sync")["set_healed"], {"id": id, "seq": seq})
        if place.epoch is not None and core.missed_notices(place, state.horizon):
            # Otherwise the laptop would seem to have read deleted notices. It sends its operations
            # again.
            return OtherEpoch(epoch=state.epoch, again=True)
        acks = tuple(
            _ack(engine, connection, state, op, outcome)
            for op, outcome in zip(ops, outcomes, strict=True)
        )
        tags = feed.tag_shares(connection, pushed.user) if tagged else None
    engine.worker.wake()
    return Acks(place=place_of(state), acks=acks, tags=tags)


def _catch_up(engine: Engine) -> ServerState:
    """Number new changes in several transactions, within a time limit."""
    feed = engine.store.feed
    until = time.monotonic() + NUMBERING_SECONDS
    while True:
        with feed.transaction() as connection:
            state = feed.number(connection)
        if not state.unfinished or time.monotonic() > until:
            return state


def numbered_state(engine: Engine) -> ServerState:
    state = engine.store.feed.state()
    return _catch_up(engine) if state is None or engine.store.feed.is_behind(state) else state


def _with_sensitive_setting(engine: Engine, place: Place) -> Engine:
    allowed = engine.settings.sync_sensitive and place.sensitive
    return msgspec.structs.replace(
        engine, settings=msgspec.structs.replace(engine.settings, sync_sensitive=allowed)
    )


def digests(engine: Engine, scopes: Sequence[str] = ()) -> dict[str, str]:
    """Return digests by bucket of what the user may read."""
    feed = engine.store.feed
    if feed.is_behind(feed.state()):
        _catch_up(engine)
    with feed.snapshot() as connection:
        rows = connection.execute(
            connection.sql("sync")["heads"], {"viewer": engine.viewer}
        ).fetchall()
    return head_digests((row[0], row[1]) for row in rows if core.in_scopes(row[2], scopes))


def place_of(state: ServerState, seq: int | None = None) -> Place:
    return Place(
        epoch=state.epoch, seq=state.seq if seq is None else seq, top=state.top, mark=state.mark
    )


def _check_epoch(
    engine: Engine, connection: WriteTransaction, place: Place
) -> ServerState | OtherEpoch:
    """Return the server's numbers, or another epoch if the laptop's place is not of this one."""
    feed = engine.store.feed
    state = feed.number(connection)
    if place.epoch is None:
        return state
    known = place.top > 0 and feed.knows(connection, place.top, place.mark)
    if place.epoch == state.epoch and (known or not place.top):
        return state
    if known or place.epoch in state.past:
        return OtherEpoch(epoch=state.epoch, known=known)
    return OtherEpoch(epoch=feed.begin(connection, place.epoch).epoch)


def _ack(
    engine: Engine, connection: Connection, state: ServerState, op: Op, outcome: Outcome
) -> Ack:
    result, id, reason = outcome
    item = current_item(engine, connection, state, id) if id else None
    if result not in ("refused", "later") and op.kind != "purge":
        result = (
            "purged" if isinstance(item, Purged) else "gone" if isinstance(item, Gone) else result
        )
    if result == "refused" and isinstance(item, Gone):
        item = None  # reveal nothing about a memory that they may not know
    return Ack(op=op.op, result=result, id=id or op.id, item=item, reason=reason)


def current_item(engine: Engine, connection: Connection, state: ServerState, id: str) -> Item:
    whom = {"id": id, "viewer": engine.viewer}
    buried = connection.execute(connection.sql("sync")["tombstone_for"], whom).fetchone()
    if buried is not None:
        return Purged(id=id, owner=buried["owner"], first_rev=buried["first_rev"])
    key = key_by_id(connection, id)
    return Gone(id=id) if key is None else _item(engine, connection, state, key)


def _item(engine: Engine, connection: Connection, state: ServerState, key: int) -> Item:
    return _items(engine, connection, state, [key])[key]


def _items(
    engine: Engine, connection: Connection, state: ServerState, keys: Sequence[int]
) -> dict[int, Item]:
    user, sql = engine.viewer, connection.sql("sync")
    listed = {"keys": msgspec.json.encode(list(keys)).decode(), "viewer": user}
    seen = {row[0] for row in connection.execute(sql["seen_keys"], listed).fetchall()}
    numbers = {
        row["memory"]: row["seq"] for row in connection.execute(sql["known"], listed).fetchall()
    }
    items: dict[int, Item] = {}
    for key, bundle in read_bundles(connection, keys, user).items():
        if key not in seen:
            items[key] = Gone(id=bundle.id)
        elif bundle.head.fields.get("sensitive") and not engine.settings.sync_sensitive:
            items[key] = Withheld(
                id=bundle.id,
                seq=numbers[key],
                redacted=core.redacted(bundle),
                shares=bundle.shares,
                links=bundle.links,
            )
        else:
            items[key] = msgspec.structs.replace(bundle, seq=numbers[key], epoch=state.epoch)
    return items


def pull(engine: Engine, place: Place, limit: int) -> Page | OtherEpoch:
    """Return the user's changes since the place, in their present state."""
    engine = _with_sensitive_setting(engine, place)
    feed = engine.store.feed
    state = feed.state()
    if feed.is_behind(state) or _is_at_other_epoch(engine, state, place):
        # Send nothing before everything is numbered; the laptop asks again.
        if _catch_up(engine).unfinished:
            return Page(start=place.seq, place=place, more=True, items=())
        with feed.transaction() as connection:
            standing = _check_epoch(engine, connection, place)
        if isinstance(standing, OtherEpoch):
            return standing
    with feed.snapshot() as connection:
        state = feed.state(connection)
        assert state is not None, "numbered above"
        if place.epoch is not None and core.missed_notices(place, state.horizon):
            return OtherEpoch(epoch=state.epoch, again=True)
        user = engine.viewer
        assert user is not None, "a laptop comes with a key"
        events, more = feed.events(connection, user, place.seq, limit)
        items = _items_of_events(engine, connection, state, place, events)
        tags = None if more else feed.tag_shares(connection, user)
    last = events[-1].seq if more else state.seq
    return Page(start=place.seq, place=place_of(state, last), more=more, items=items, tags=tags)


def _is_at_other_epoch(engine: Engine, state: ServerState | None, place: Place) -> bool:
    if state is None or place.epoch is None:
        return state is None
    return place.epoch != state.epoch or (
        place.top > 0 and (place.top, place.mark) != (state.top, state.mark)
    )


def _items_of_events(
    engine: Engine,
    connection: Connection,
    state: ServerState,
    place: Place,
    events: Sequence[FeedEvent],
) -> tuple[Item, ...]:
    outside = {
        event.key for event in events if event.key and not core.in_scopes(event.scope, place.scopes)
    }
    items = _items(
        engine,
        connection,
        state,
        [event.key for event in events if event.key and event.key not in outside],
    )
    ids = tuple(event.id for event in events if event.key in outside)
    found: list[Item] = (
        [Outside(ids=ids, redacted=_redacted(engine, connection, outside))] if ids else []
    )
    for event in events:
        if event.key in outside:
            continue
        if event.key:
            found.append(items[event.key])
        elif event.purged is not None:
            found.append(
                Purged(id=event.id, owner=event.purged, seq=event.seq, first_rev=event.first_rev)
            )
        elif isinstance(current_item(engine, connection, state, event.id), Gone | Purged):
            found.append(Gone(id=event.id, seq=event.seq))
    return tuple(found)


def _redacted(engine: Engine, connection: Connection, keys: Iterable[int]) -> tuple[str, ...]:
    listed = {
        "keys": as_json(keys),
        "viewer": engine.viewer,
        "secret": "%[secret:%",
        "private": "%[private%",
    }
    rows = connection.execute(connection.sql("sync")["with_placeholders"], listed).fetchall()
    bundles = read_bundles(connection, [row[0] for row in rows]) if rows else {}
    return tuple(name for bundle in bundles.values() for name in core.redacted(bundle))
