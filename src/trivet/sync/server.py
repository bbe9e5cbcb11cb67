"""The server's side of sync: takes in what laptops did, and tells them what changed, as each user may know it.

Rights are those of the API: what a user may read is decided by the one visibility predicate, what they may do by
`core.refusal` and by the bodies of the verbs. An operation and the note that it was done are one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from trivet.clock import moment, now
from trivet.contract import FeedbackRequest, ShareRequest, UnshareRequest
from trivet.decoding import known_type
from trivet.errors import Conflict, InvalidInput, NotFound, StoreError, TrivetError
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.memory.export_import import check_fields
from trivet.memory.feedback import feedback
from trivet.memory.remember import check_memory, document_of
from trivet.memory.sharing import share, unshare
from trivet.store.relational.audit import note_write
from trivet.store.relational.bundles import memory_of, name_revisions, put_bundle, read_bundles
from trivet.store.relational.database import Connection, WriteTransaction
from trivet.store.relational.feed import Event, ServerState
from trivet.store.relational.secrets import check_keys, insert_secrets
from trivet.store.sync_records import KNOWN_FIELDS, Bundle, Rev, ShareRecord
from trivet.sync import core
from trivet.sync.check import check_op
from trivet.sync.messages import (
    OP_KINDS,
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
    Result,
    Withheld,
)
from trivet.types import Link, Sealed

# A request must be answered before the server's limit; the first numbering of a large store goes on with the next.
NUMBERING_SECONDS = 10.0
UNKNOWN_KIND = "The server's Trivet is older and does not know what a {} is. It is sent again once it is upgraded."
NUMBERING = "The server is still numbering its memories for the first laptop. It is sent again."

Outcome = tuple[Result, str, str]  # how it went, the id of the memory, and why it was refused


def push(engine: Engine, place: Place, ops: Sequence[Op]) -> Answer:
    """All in one transaction; where the store refuses that, each in its own, so that one cannot hold up the others."""
    engine = _taking(engine, place)
    try:
        return _push(engine, place, ops)
    except StoreError:
        if len(ops) == 1:
            raise
    acks: list[Ack] = []
    tags: tuple[ShareRecord, ...] | None = None
    for op in ops:
        try:
            answer = _push(engine, place, [op])
        except StoreError as error:
            acks.append(Ack(op=op.op, result="later", id=op.id, reason=str(error)))
            continue
        if not isinstance(answer, Acks):
            return answer
        acks += answer.acks
        place, tags = answer.place, answer.tags or tags
    return Acks(place=place, acks=tuple(acks), tags=tags)


def _push(engine: Engine, place: Place, ops: Sequence[Op]) -> Answer:
    feed = engine.store.feed
    if _catch_up(engine).unfinished:
        acks = tuple(Ack(op=op.op, result="later", id=op.id, reason=NUMBERING) for op in ops)
        return Acks(place=place, acks=acks)
    with feed.transaction() as connection:
        state = _standing(engine, connection, place)
        if isinstance(state, OtherEpoch):
            return state
        pushed = _Push(engine, connection)
        outcomes = [pushed.take(op) for op in ops]
        state = feed.number(connection)
        for id, seq in pushed.healed.items():
            connection.execute(connection.sql("sync")["set_healed"], {"id": id, "seq": seq})
        acks = tuple(_ack(engine, connection, state, op, outcome) for op, outcome in zip(ops, outcomes, strict=True))
        tagged = any(op.kind in ("share_tag", "unshare_tag") for op in ops)
        tags = feed.tag_shares(connection, pushed.user) if tagged else None
    engine.worker.wake()
    return Acks(place=place_of(state), acks=acks, tags=tags)


def _catch_up(engine: Engine) -> ServerState:
    """Numbers what is to be numbered, in as many transactions as it takes, for a while."""
    feed = engine.store.feed
    until = time.monotonic() + NUMBERING_SECONDS
    while True:
        with feed.transaction() as connection:
            state = feed.number(connection)
        if not state.unfinished or time.monotonic() > until:
            return state


def caught_up(engine: Engine) -> ServerState:
    """The server's numbers, after what is to be numbered was."""
    state = engine.store.feed.state()
    return _catch_up(engine) if state is None or engine.store.feed.is_behind(state) else state


def _taking(engine: Engine, place: Place) -> Engine:
    """Sensitive memories travel only where both sides allow it."""
    allowed = engine.settings.sync_sensitive and place.sensitive
    return msgspec.structs.replace(engine, settings=msgspec.structs.replace(engine.settings, sync_sensitive=allowed))


def digests(engine: Engine, scopes: Sequence[str] = ()) -> dict[str, str]:
    """Of what the user may read, in these scopes, by bucket, to compare with a laptop's."""
    feed = engine.store.feed
    if feed.is_behind(feed.state()):
        _catch_up(engine)
    with feed.snapshot() as connection:
        rows = connection.execute(connection.sql("sync")["heads"], {"viewer": engine.viewer}).fetchall()
    return core.buckets((row[0], row[1]) for row in rows if core.in_scopes(row[2], scopes))


def place_of(state: ServerState, seq: int | None = None) -> Place:
    return Place(epoch=state.epoch, seq=state.seq if seq is None else seq, top=state.top, mark=state.mark)


def _standing(engine: Engine, connection: WriteTransaction, place: Place) -> ServerState | OtherEpoch:
    """The server's numbers, if the laptop's are of the same life. A mark that is not ours: we were put back.

    Whoever knows a mark of ours saw nothing that we lack, in whatever epoch that was. So a laptop that claims a mark
    that never was makes others take note of an epoch, and nobody but itself heal.
    """
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


def _ack(engine: Engine, connection: Connection, state: ServerState, op: Op, outcome: Outcome) -> Ack:
    """Whatever became of the operation, its memory is told as it stands now."""
    result, id, reason = outcome
    item = present(engine, connection, state, id) if id else None
    if result not in ("refused", "later") and op.kind != "purge":
        result = "purged" if isinstance(item, Purged) else "gone" if isinstance(item, Gone) else result
    if result == "refused" and isinstance(item, Gone):
        item = None  # of a memory that they may not know nothing is told
    return Ack(op=op.op, result=result, id=id or op.id, item=item, reason=reason)


def present(engine: Engine, connection: Connection, state: ServerState, id: str) -> Item:
    whom = {"id": id, "viewer": engine.viewer}
    buried = connection.execute(connection.sql("sync")["tombstone_for"], whom).fetchone()
    if buried is not None:
        return Purged(id=id, owner=buried["owner"])
    row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
    return _item(engine, connection, state, int(row["key"])) if row is not None else Gone(id=id)


def _item(engine: Engine, connection: Connection, state: ServerState, key: int) -> Item:
    return _items(engine, connection, state, [key])[key]


def _items(engine: Engine, connection: Connection, state: ServerState, keys: Sequence[int]) -> dict[int, Item]:
    user, sql = engine.viewer, connection.sql("sync")
    listed = {"keys": msgspec.json.encode(list(keys)).decode(), "viewer": user}
    seen = {row[0] for row in connection.execute(sql["seen_keys"], listed).fetchall()}
    numbers = {row["memory"]: row["seq"] for row in connection.execute(sql["known"], listed).fetchall()}
    items: dict[int, Item] = {}
    for key, bundle in read_bundles(connection, keys, user).items():
        if key not in seen:
            items[key] = Gone(id=bundle.id)
        elif bundle.head.fields.get("sensitive") and not engine.settings.sync_sensitive:
            items[key] = Withheld(id=bundle.id, seq=numbers[key])
        else:
            items[key] = msgspec.structs.replace(bundle, seq=numbers[key], epoch=state.epoch)
    return items


def pull(engine: Engine, place: Place, limit: int) -> Page | OtherEpoch:
    """What changed since, for this user, as it stands now."""
    engine = _taking(engine, place)
    feed = engine.store.feed
    state = feed.state()
    if feed.is_behind(state) or _is_elsewhere(engine, state, place):
        if _catch_up(engine).unfinished:  # nothing is told before all is numbered; the laptop asks again
            return Page(start=place.seq, place=place, more=True, items=())
        with feed.transaction() as connection:
            standing = _standing(engine, connection, place)
        if isinstance(standing, OtherEpoch):
            return standing
    with feed.snapshot() as connection:
        state = feed.state(connection)
        assert state is not None, "numbered above"
        if place.epoch is not None and 0 < place.seq < state.horizon:
            return OtherEpoch(epoch=state.epoch, again=True)
        user = engine.viewer
        assert user is not None, "a laptop comes with a key"
        events, more = feed.events(connection, user, place.seq, limit)
        items = _told(engine, connection, state, place, events)
        tags = None if more else feed.tag_shares(connection, user)
    last = events[-1].seq if more else state.seq
    return Page(start=place.seq, place=place_of(state, last), more=more, items=items, tags=tags)


def _is_elsewhere(engine: Engine, state: ServerState | None, place: Place) -> bool:
    if state is None or place.epoch is None:
        return state is None
    return place.epoch != state.epoch or (place.top > 0 and (place.top, place.mark) != (state.top, state.mark))


def _told(
    engine: Engine, connection: Connection, state: ServerState, place: Place, events: Sequence[Event]
) -> tuple[Item, ...]:
    outside = {event.key for event in events if event.key and not core.in_scopes(event.scope, place.scopes)}
    items = _items(engine, connection, state, [event.key for event in events if event.key and event.key not in outside])
    ids = tuple(event.id for event in events if event.key in outside)
    told: list[Item] = [Outside(ids=ids)] if ids else []
    for event in events:
        if event.key in outside:
            continue
        if event.key:
            told.append(items[event.key])
        elif event.purged is not None:
            told.append(Purged(id=event.id, owner=event.purged, seq=event.seq))
        elif isinstance(present(engine, connection, state, event.id), Gone | Purged):
            told.append(Gone(id=event.id, seq=event.seq))
    return tuple(told)


# What gets another id where somebody else's memory has its own.
_GIVEN_ANEW = ("create", "purge", "heal")


class _Push:
    """One push of a user. Ids that somebody else has are given anew, and later operations of the push follow."""

    def __init__(self, engine: Engine, connection: WriteTransaction) -> None:
        self._engine = engine
        self._connection = connection
        self._sql = connection.sql("sync")
        user = engine.viewer
        assert user is not None, "a laptop comes with a key"
        self.user = user
        self._named: dict[str, str] = {}
        self.healed: dict[str, int] = {}

    def take(self, op: Op) -> Outcome:
        if op.kind not in OP_KINDS:
            return "later", op.id, UNKNOWN_KIND.format(op.kind)
        done = self._done(op)
        if done is not None:
            if op.kind in _GIVEN_ANEW and done[1] != op.id:
                self._named[op.id] = done[1]
            return done
        op = msgspec.structs.replace(op, id=self._named.get(op.id, op.id))
        try:
            result, id = self._act(op)
            reason = ""
        except StoreError:
            raise
        except TrivetError as error:  # all of these come before anything is written
            result, id, reason = "refused", op.id, str(error)
        values = {"op": op.op, "result": result, "id": id, "reason": reason, "at": now()}
        self._connection.execute(self._sql["put_applied"], values)
        if result not in ("refused", "already") and id:
            note_write(self._connection, self.user, f"sync {op.kind}", [id])
        return result, id, reason

    def _done(self, op: Op) -> Outcome | None:
        """How it went when it came before."""
        row = self._connection.execute(self._sql["applied"], {"op": op.op}).fetchone()
        return None if row is None else (row["result"], row["id"], row["reason"])

    def _act(self, op: Op) -> tuple[Result, str]:
        check_op(op)
        if op.kind in ("share_tag", "unshare_tag"):
            return self._share_tag(op), ""
        id = check_id(op.id)
        key, held = self._held(id)
        brought = op.bundle is None or op.bundle.owner == self.user
        if op.kind in _GIVEN_ANEW and brought and self._is_anothers(id, held):
            id = self._named[op.id] = core.other_id(id, self.user)
            bundle = msgspec.structs.replace(op.bundle, id=id) if op.bundle else None
            op = msgspec.structs.replace(op, id=id, bundle=bundle)
            key, held = self._held(id)
        if self._is_buried(id):
            return ("already" if op.kind == "purge" else "purged"), id
        reason = core.refusal(held, op, self.user, self._access(key))
        if reason is not None:
            raise InvalidInput(reason)
        return self._perform(op, id, held), id

    def _perform(self, op: Op, id: str, held: Bundle | None) -> Result:
        if op.kind == "purge":
            return self._purge(id, held)
        if op.kind in ("share", "unshare"):
            return self._share(op)
        if op.kind in ("link", "unlink"):
            return self._link(op)
        if op.kind == "heal":
            return self._heal(op, held)
        if op.kind == "feedback":
            return self._judge(op)
        if op.kind == "create":
            result, new = core.create(held, op, self.user)
        else:
            assert held is not None, "refused above"
            if op.kind == "edit":
                result, new = core.edit(held, op, self.user)
            else:
                result, new = core.resolve(held, op) if op.kind == "resolve" else core.scrub(held, op)
        if new is not held:
            self._write(held, new)
        return result

    def _held(self, id: str) -> tuple[int | None, Bundle | None]:
        row = self._connection.execute(self._connection.sql("memories")["by_id"], {"id": id}).fetchone()
        if row is None:
            return None, None
        key = int(row["key"])
        name_revisions(self._connection, [key])
        return key, read_bundles(self._connection, [key])[key]

    def _is_anothers(self, id: str, held: Bundle | None) -> bool:
        """Somebody else's memory has the id, or had it, as far as this user was never told."""
        if held is not None:
            return held.owner != self.user
        gone = self._connection.execute(self._sql["tombstone"], {"id": id}).fetchone() is not None
        return gone and not self._is_buried(id)

    def _is_buried(self, id: str) -> bool:
        whom = {"id": id, "viewer": self.user}
        return self._connection.execute(self._sql["tombstone_for"], whom).fetchone() is not None

    def _access(self, key: int | None) -> str | None:
        if key is None:
            return None
        listed = {"keys": f"[{key}]", "viewer": self.user}
        if not self._connection.execute(self._sql["seen_keys"], listed).fetchone():
            return None
        return "write" if self._connection.execute(self._sql["writable_of"], listed).fetchone() else "read"

    def _write(self, held: Bundle | None, new: Bundle) -> None:
        """Every revision that is new here is checked and guarded as if a caller of the API had said it."""
        known = held.revs if held else {}
        sealed: list[Sealed] = []

        def guarded(rev: Rev) -> Rev:
            return rev if known.get(rev.rev) == rev else self._guarded(new, rev, sealed)

        new = msgspec.structs.replace(
            new, trunk=tuple(map(guarded, new.trunk)), branches=tuple(map(guarded, new.branches))
        )
        check_keys(self._connection, sealed)
        key = put_bundle(self._connection, new, new.owner, document_of)
        self._connection.note_change(key)
        insert_secrets(self._connection, key, sealed)

    def _guarded(self, new: Bundle, rev: Rev, sealed: list[Sealed]) -> Rev:
        engine = self._engine
        try:
            memory = memory_of(new.id, new.owner, rev)
        except msgspec.ValidationError as error:
            raise InvalidInput(str(error).replace("`", "")) from None
        if memory.sensitive and rev.number <= 1 and not engine.settings.sync_sensitive:
            raise InvalidInput("Sensitive memories stay on their machine: this server does not take them.")
        check_fields(memory)
        check_memory(engine, memory)
        protected = engine.guard.protect(
            memory, rev.number, lambda: [*engine.store.secrets.of(new.id), *sealed], recognise=new.owner == self.user
        )
        if protected.memory == memory:
            return rev
        sealed += protected.secrets
        clean = msgspec.to_builtins(protected.memory)
        return msgspec.structs.replace(
            rev, fields={**rev.fields, **{name: clean[name] for name in KNOWN_FIELDS & clean.keys()}}
        )

    def _purge(self, id: str, held: Bundle | None) -> Result:
        """Also of a memory that never came here: another machine of the user may still bring it."""
        if held is None:
            self._connection.execute(self._sql["put_tombstone"], {"id": id, "owner": self.user, "seq": None})
        else:
            self._engine.store.memories.purge(id)
        return "applied"

    def _share(self, op: Op) -> Result:
        assert op.share is not None, "checked before"
        self._engine.demand("share")
        if op.kind == "share":
            share(self._engine, ShareRequest(id=op.id, user=op.share.grantee, permission=op.share.permission))
            return "applied"
        try:
            unshare(self._engine, UnshareRequest(id=op.id, user=op.share.grantee))
        except NotFound:
            return "already"
        return "applied"

    def _share_tag(self, op: Op) -> Result:
        assert op.share is not None, "checked before"
        self._engine.demand("share")
        if op.kind == "share_tag":
            share(self._engine, ShareRequest(tag=op.share.tag, user=op.share.grantee, permission=op.share.permission))
            return "applied"
        try:
            unshare(self._engine, UnshareRequest(tag=op.share.tag, user=op.share.grantee))
        except NotFound:
            return "already"
        return "applied"

    def _link(self, op: Op) -> Result:
        assert op.link is not None, "checked before"
        links = self._engine.store.links
        source, target = (self._named.get(id, id) for id in (op.link.source, op.link.target))
        if op.kind == "link":
            made = Link(kind=op.link.kind, source=source, target=target, created_at=moment(op.link.created_at))
            return "applied" if links.add(made) else "already"
        try:
            links.remove(source, op.link.kind, target)
        except NotFound:
            return "already"
        return "applied"

    def _judge(self, op: Op) -> Result:
        """What the user said of the memory; what comes last counts."""
        for one in op.feedback:
            said = {"id": op.id, "verdict": one.verdict, "query": one.query or None}
            try:
                request = msgspec.convert(said, known_type(FeedbackRequest))
            except msgspec.ValidationError as error:
                raise InvalidInput(f"feedback: {error}") from None
            feedback(self._engine, request)
        return "applied"

    def _heal(self, op: Op, held: Bundle | None) -> Result:
        assert op.bundle is not None, "checked before"
        healed = int(self._connection.execute(self._sql["healed"], {"id": op.id}).fetchone()[0])
        brought = op.bundle
        shared = held is not None and self._shared_with(op.id)
        decided = core.heal(held, brought, self.user, shared, healed)
        if decided is None:
            raise Conflict("The server was put back and does not have it; its owner's machine must bring it back.")
        result, new = decided
        self._write(held, new)
        self._set_shares(op.id, held, new)
        if brought.owner == self.user:
            self.healed[op.id] = max(self.healed.get(op.id, 0), brought.seq)
        return result

    def _shared_with(self, id: str) -> bool:
        row = self._connection.execute(self._connection.sql("memories")["by_id"], {"id": id}).fetchone()
        return row is not None and self._access(int(row["key"])) == "write"

    def _set_shares(self, id: str, held: Bundle | None, new: Bundle) -> None:
        before = {one.grantee: one.permission for one in (held.shares if held else ())}
        after = {one.grantee: one.permission for one in new.shares}
        for grantee in before.keys() - after.keys():
            self._engine.store.shares.unshare_memory(id, grantee)
        for grantee, permission in after.items():
            if before.get(grantee) != permission and not new.head.fields.get("sensitive"):
                self._engine.store.shares.share_memory(id, grantee, permission)
