"""The laptop's side of sync: takes in an answer of the server, in one transaction with the place it then stands at."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.clock import now
from trivet.elapsed import look
from trivet.memory.engine import Engine
from trivet.store.relational.bundles import read_bundles
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.feed import last_change
from trivet.store.sync_records import Bundle
from trivet.sync import core
from trivet.sync.healing import Healing
from trivet.sync.messages import Ack, Acks, Answer, Gone, Item, Op, OtherEpoch, Outside, Page, Place, Purged, Withheld
from trivet.sync.outbox import Pending, pending_of
from trivet.sync.preparing import digest_of_known, prepare, without_unsent
from trivet.sync.sending import outgoing
from trivet.sync.sensitivity import agreed
from trivet.sync.state import LaptopState, load, owner_here, save
from trivet.types import LOCAL

Asked = tuple[Place, Sequence[Op]]


class Laptop:
    """A store that follows a server. Several processes may use it at once: each step is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._database = engine.store.feed  # the whole store, whoever looks at it

    def ask(self, most: int) -> Asked:
        """Where the laptop stands, and the operations to send; without any it is time to pull."""
        with self._database.transaction() as connection:
            state = self._prepared(connection)
            return state.standing, outgoing(connection, state, most)

    def receive(self, asked: Place, answer: Answer) -> bool:
        """Takes in an answer; False if it came too late to count."""
        with self._database.transaction() as connection:
            state = self._prepared(connection)
            if not core.counts(state.standing, asked, answer):
                return False
            took = _Taking(self.engine, connection, state)
            if isinstance(answer, OtherEpoch):
                state = took.epoch(answer)
            elif isinstance(answer, Acks):
                state = took.acks(answer)
            else:
                state = took.page(answer)
            save(connection, took.in_contact(state))
        return True

    def wake(self) -> None:
        """What came can be embedded and read."""
        self.engine.worker.wake()

    def _prepared(self, connection: WriteTransaction) -> LaptopState:
        state = load(connection)
        assert state is not None, "only a store that joined is asked"
        state = agreed(connection, state, state.place.sensitive and self.engine.settings.sync_sensitive)
        return prepare(connection, state, state.place.sensitive)


class _Taking(Healing):
    """One answer, within its transaction."""

    def in_contact(self, state: LaptopState) -> LaptopState:
        if state.hidden:
            show_others(self._connection)
        # What is written here is no news to send.
        last = last_change(self._connection)
        return msgspec.structs.replace(state, contact=now(), hidden=False, away=0.0, looked=look(), change=last)

    def acks(self, answer: Acks) -> LaptopState:
        for ack in answer.acks:
            self._ack(ack)
        if answer.tags is not None:
            self._set_tag_shares(answer.tags)
        return msgspec.structs.replace(self._state, place=core.moved_on(self._state.place, answer))

    def page(self, answer: Page) -> LaptopState:
        ids = [item.id for item in answer.items if isinstance(item, Bundle)]
        self._fresh = set(ids) - self._heard_of(ids)
        for item in answer.items:
            self.take(item)
        if answer.tags is not None:
            self._set_tag_shares(answer.tags)
        place = core.moved_on(self._state.place, answer)
        if self._state.full and not answer.more:
            self._finish_full_pull(place.epoch or "")
            return msgspec.structs.replace(self._state, place=place, full=False)
        return msgspec.structs.replace(self._state, place=place)

    def _heard_of(self, ids: Sequence[str]) -> set[str]:
        listed = {"ids": msgspec.json.encode(ids).decode()}
        return {row[0] for row in self._connection.execute(self._sql["heard_of"], listed).fetchall()}

    def _ack(self, ack: Ack) -> None:
        row = self._connection.execute(self._sql["by_op"], {"op": ack.op}).fetchone()
        if row is None or ack.result == "later":
            return
        mine = pending_of(row)
        if mine.kind in ("create", "heal") and ack.id != mine.id:
            self._rename(mine.id, ack.id)
            mine = msgspec.structs.replace(mine, id=ack.id)
        if mine.kind == "purge" and ack.id != mine.id:  # ours had got another id; the one we knew is somebody else's
            self._connection.execute(self._sql["unbury"], {"id": mine.id})
            self._bury(ack.id, self._user, mine.rev)
        if ack.result == "refused":
            self._park(mine, ack.reason)
            if mine.kind == "feedback":
                for name in ("unsay", "unsay_new"):
                    self._connection.execute(self._sql[name], {"key": mine.memory})
        self._connection.execute(self._sql["dequeue"], {"op": ack.op})
        if ack.result != "refused" and isinstance(ack.item, Withheld):
            self._lies_beside_there(mine)
        if ack.item is not None:
            self.take(ack.item)
        elif self._replica(mine.id) is not None:
            self._settle(mine.id)
        if mine.kind == "heal" and isinstance(ack.item, Bundle):
            self._confirm(ack.item)

    def _lies_beside_there(self, mine: Pending) -> None:
        """What lay beside here alone. Of a sensitive memory the server does not tell that it has it now."""
        replica = self._replica(mine.id)
        if replica is None or mine.kind != "create":
            return
        key = replica["memory"]
        self._connection.execute(self._sql["beside_there"], {"key": key, "rev": mine.rev})
        bundle = without_unsent(self._connection, key, read_bundles(self._connection, [key])[key])
        digest = digest_of_known(bundle, replica["revision"])
        self._connection.execute(self._sql["set_digest"], {"id": mine.id, "digest": digest})

    def take(self, item: Item) -> None:
        if isinstance(item, Bundle):
            self._take_bundle(item)
        elif isinstance(item, Purged):
            self._bury(item.id, item.owner, item.first_rev)
        elif isinstance(item, Gone):
            replica = self._replica(item.id)
            if replica is not None and replica["access"] != "own":
                self._remove(item.id, "It is not shared with you any longer.")
        elif isinstance(item, Outside):
            for id in item.ids:
                self._let_go(id, item.redacted)
        else:
            self._withhold(item)

    def _take_bundle(self, bundle: Bundle) -> None:
        if bundle.id in self._fresh:
            self._write(bundle)
        else:
            self._take_known(bundle)
        if not core.in_scopes(bundle.head.fields.get("scope", ""), self._state.place.scopes):
            self._let_go(bundle.id)

    def _take_known(self, bundle: Bundle) -> None:
        """One that this laptop may have heard of, or has something under its id."""
        if self._is_buried(bundle.id):
            return
        if bundle.owner != self._user and self._is_ours(bundle.id):
            self._rename(bundle.id, core.other_id(bundle.id, self._user))  # ours steps aside at once
        elif self._is_of_another_than(bundle):
            self._remove(bundle.id, "The server that has been put back has somebody else's memory under its id.")
        replica = self._replica(bundle.id)
        known = (replica["epoch"], replica["seq"]) if replica is not None else None
        # The same number is the same state, and tells anew what an operation that was refused had hidden.
        if known is None or known == (bundle.epoch, bundle.seq) or core.is_news(*known, bundle):
            self._write(bundle)
        else:
            self._settle(bundle.id)

    def _is_of_another_than(self, bundle: Bundle) -> bool:
        """What somebody shared in an earlier life of the server may have had the id that is given to another's now."""
        row = self._row(bundle.id)
        return row is not None and row["owner"] not in (LOCAL, owner_here(self._state, bundle.owner))


def show_others(connection: WriteTransaction) -> None:
    connection.execute(connection.sql("replica")["show_others"], {"at": now()})
    for row in connection.execute(connection.sql("replica")["others"]).fetchall():
        connection.note_change(row[0])
