"""The laptop's side of sync: applies server answers, joins and leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trivet.common.clock import now, read_clock
from trivet.common.ids import is_name_based_id, reassigned_id
from trivet.errors import Conflict, InvalidInput
from trivet.memory.engine import Engine
from trivet.settings.locations import is_file
from trivet.store.records import Bundle, Rev, changes_between
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.tables.memory_rows import row_by_id
from trivet.store.relational.tables.sync_bundles import read_bundles
from trivet.store.relational.tables.sync_feed import SYNC, last_change
from trivet.sync import core
from trivet.sync.laptop_state import LaptopState, Pending, load, local_owner, pending_of, save
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
from trivet.sync.outgoing import (
    digest_of_known,
    enqueue_changes,
    next_ops,
    set_sensitive_allowed,
    without_unsent_branches,
)
from trivet.sync.replica_changes import ReplicaHealing, ReplicaRemoval, rename
from trivet.types import LOCAL

Asked = tuple[Place, Sequence[Op]]


class Laptop:
    """A store that follows a server; each step is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._database = engine.store.feed

    def ask(self, most: int) -> Asked:
        """Return the laptop's place and the operations to send; without any it is time to pull."""
        with self._database.transaction() as connection:
            state = self._prepared(connection)
            return state.standing, next_ops(connection, state, most)

    def receive(self, asked: Place, answer: Answer) -> bool:
        """Apply an answer; return False if it came too late to count."""
        with self._database.transaction() as connection:
            state = self._prepared(connection)
            if not core.answer_counts(state.standing, asked, answer):
                return False
            took = _AnswerApplier(self.engine, connection, state)
            if isinstance(answer, OtherEpoch):
                state = took.epoch(answer)
            elif isinstance(answer, Acks):
                state = took.acks(answer)
            else:
                state = took.page(answer)
            save(connection, took.in_contact(state))
        return True

    def wake(self) -> None:
        self.engine.worker.wake()

    def _prepared(self, connection: WriteTransaction) -> LaptopState:
        state = load(connection)
        assert state is not None, "only a store that joined is asked"
        state = set_sensitive_allowed(
            connection, state, state.place.sensitive and self.engine.settings.sync_sensitive
        )
        return enqueue_changes(connection, state, state.place.sensitive)


class _AnswerApplier(ReplicaHealing):
    def in_contact(self, state: LaptopState) -> LaptopState:
        if state.hidden:
            show_others(self._connection)
        # These changes came from the server: do not send them.
        last = last_change(self._connection)
        return msgspec.structs.replace(
            state, contact=now(), hidden=False, away=0.0, looked=read_clock(), change=last
        )

    def acks(self, answer: Acks) -> LaptopState:
        for ack in answer.acks:
            self._ack(ack)
        if answer.tags is not None:
            self._set_tag_shares(answer.tags)
        return msgspec.structs.replace(
            self._state, place=core.advanced_place(self._state.place, answer)
        )

    def page(self, answer: Page) -> LaptopState:
        ids = [item.id for item in answer.items if isinstance(item, Bundle)]
        self._fresh = set(ids) - self._known_ids(ids)
        for item in answer.items:
            self.take(item)
        if answer.tags is not None:
            self._set_tag_shares(answer.tags)
        place = core.advanced_place(self._state.place, answer)
        if self._state.full and not answer.more:
            self._finish_full_pull(place.epoch or "")
            return msgspec.structs.replace(self._state, place=place, full=False)
        return msgspec.structs.replace(self._state, place=place)

    def _known_ids(self, ids: Sequence[str]) -> set[str]:
        listed = {"ids": msgspec.json.encode(ids).decode()}
        return {
            row[0] for row in self._connection.execute(self._sql["heard_of"], listed).fetchall()
        }

    def _ack(self, ack: Ack) -> None:
        row = self._connection.execute(self._sql["by_op"], {"op": ack.op}).fetchone()
        if row is None or ack.result == "later":
            return
        mine = pending_of(row)
        if mine.kind in ("create", "heal") and ack.id != mine.id:
            self._rename(mine.id, ack.id)
            mine = msgspec.structs.replace(mine, id=ack.id)
        # Our memory had another id on the server; the id we used is another user's.
        if mine.kind == "purge" and ack.id != mine.id:
            self._connection.execute(self._sql["unbury"], {"id": mine.id})
            self._record_purge(ack.id, self._user, mine.rev)
        if ack.result == "refused":
            self._park(mine, ack.reason)
            if mine.kind == "feedback":
                for name in ("unsay", "unsay_new"):
                    self._connection.execute(self._sql[name], {"key": mine.memory})
        self._connection.execute(self._sql["dequeue"], {"op": ack.op})
        if ack.result != "refused" and isinstance(ack.item, Withheld):
            self._mark_branch_sent(mine)
        if ack.item is not None:
            self.take(ack.item)
        elif self._replica(mine.id) is not None:
            self._settle(mine.id)
        if mine.kind == "heal" and isinstance(ack.item, Bundle):
            self._confirm(ack.item)

    def _mark_branch_sent(self, mine: Pending) -> None:
        """Note that the server has a branch; for a sensitive memory its answer does not say so."""
        replica = self._replica(mine.id)
        if replica is None or mine.kind != "create":
            return
        key = replica["memory"]
        self._connection.execute(self._sql["beside_there"], {"key": key, "rev": mine.rev})
        bundle = without_unsent_branches(
            self._connection, key, read_bundles(self._connection, [key])[key]
        )
        digest = digest_of_known(bundle, replica["revision"])
        self._connection.execute(self._sql["set_digest"], {"id": mine.id, "digest": digest})

    def take(self, item: Item) -> None:
        if isinstance(item, Bundle):
            self._take_bundle(item)
        elif isinstance(item, Purged):
            self._record_purge(item.id, item.owner, item.first_rev)
        elif isinstance(item, Gone):
            replica = self._replica(item.id)
            if replica is not None and replica["access"] != "own":
                self._remove(item.id, "It is no longer shared with you.")
        elif isinstance(item, Outside):
            for id in item.ids:
                self._drop_out_of_scope(id, item.redacted)
        else:
            self._withhold(item)

    def _take_bundle(self, bundle: Bundle) -> None:
        if bundle.id in self._fresh:
            self._write(bundle)
        else:
            self._take_known(bundle)
        if not core.in_scopes(bundle.head.fields.get("scope", ""), self._state.place.scopes):
            self._drop_out_of_scope(bundle.id)

    def _take_known(self, bundle: Bundle) -> None:
        if self._is_purged(bundle.id):
            return
        if bundle.owner != self._user and self._is_ours(bundle.id):
            self._rename(bundle.id, reassigned_id(bundle.id, self._user))
        elif self._has_other_owner(bundle):
            self._remove(
                bundle.id,
                "The restored server has another user's memory under this id.",
            )
        replica = self._replica(bundle.id)
        known = (replica["epoch"], replica["seq"]) if replica is not None else None
        # The same number again restores what a refused operation had hidden.
        if known is None or known == (bundle.epoch, bundle.seq) or core.is_newer(*known, bundle):
            self._write(bundle)
        else:
            self._settle(bundle.id)

    def _has_other_owner(self, bundle: Bundle) -> bool:
        row = self._row(bundle.id)
        return row is not None and row["owner"] not in (
            LOCAL,
            local_owner(self._state, bundle.owner),
        )


def show_others(connection: WriteTransaction) -> None:
    connection.execute(connection.sql("replica")["show_others"], {"at": now()})
    for row in connection.execute(connection.sql("replica")["others"]).fetchall():
        connection.note_change(row[0])


def join(
    engine: Engine,
    url: str,
    user: str,
    sensitive: bool = False,
    scopes: Sequence[str] | None = None,
) -> LaptopState:
    """Follow a server; everything here becomes the user's and is sent next time.

    With `scopes` the store holds only those; joining again changes them, and an empty list means
    all.
    """
    if not is_file(engine.settings.path):
        raise InvalidInput(
            "Only a store file can follow a server. Nothing was changed; give its path with --path."
        )
    with engine.store.feed.transaction() as connection:
        known = load(connection)
        if known is not None and (known.url, known.user) != (url, user):
            raise Conflict(
                f"This store already follows {known.url} as {known.user}. Nothing was changed; run "
                "`trivet sync leave` first."
            )
        if known is not None:
            return known if scopes is None else _changed_scopes(connection, known, scopes)
        if engine.store.feed.state(connection) is not None:
            raise Conflict(
                "Laptops follow this store, so it cannot follow a server. Nothing was changed."
            )
        _rename_name_based_ids(engine, connection, user)
        place = Place(sensitive=sensitive, scopes=tuple(sorted(set(scopes or ()))))
        state = LaptopState(url=url, user=user, place=place, full=True)
        save(connection, state)
    return state


def _changed_scopes(
    connection: WriteTransaction, known: LaptopState, scopes: Sequence[str]
) -> LaptopState:
    wanted = tuple(sorted(set(scopes)))
    if wanted == known.place.scopes:
        return known
    # A full pull also names what is outside now.
    connection.execute(connection.sql("replica")["doubt_all"])
    place = msgspec.structs.replace(known.place, scopes=wanted, seq=0)
    state = msgspec.structs.replace(known, place=place, full=True)
    save(connection, state)
    return state


def _rename_name_based_ids(engine: Engine, connection: WriteTransaction, user: str) -> None:
    for (id,) in connection.execute(connection.sql("replica")["ids"]).fetchall():
        row = row_by_id(connection, id)
        if row is not None and row["owner"] == LOCAL and is_name_based_id(id):
            rename(engine, connection, id, reassigned_id(id, user))


class _Leaving(ReplicaRemoval):
    def remove_shared_copies(self) -> None:
        for row in self._connection.execute(self._sql["all"]).fetchall():
            if row["access"] != "own":
                self._remove(row["id"], self._reason)

    def keep_branches(self) -> None:
        """Park what another server would not be sent."""
        for row in self._connection.execute(self._sql["beside"]).fetchall():
            key, rev = row["memory"], row["rev"]
            bundle = read_bundles(self._connection, [key])[key]
            self._keep(bundle, bundle.revs[rev])
        for row in self._connection.execute(self._sql["all_carried"]).fetchall():
            self._keep_carried(read_bundles(self._connection, [row["memory"]]), row)

    def _keep_carried(self, held: Mapping[int, Bundle], row: Any) -> None:
        carried = msgspec.json.decode(row["bundle"], type=Bundle)
        known = held[row["memory"]].revs if row["memory"] in held else {}
        for rev in carried.revs.values():
            if rev.rev not in known:
                self._keep(carried, rev)

    def _keep(self, bundle: Bundle, rev: Rev) -> None:
        before = bundle.revs.get(rev.base or "")
        fields = changes_between(before.fields if before else {}, rev.fields)
        self._park_op(
            Op(op=rev.rev, kind="edit", id=bundle.id, rev=rev.rev, fields=fields), self._reason
        )

    @property
    def _reason(self) -> str:
        return f"This store no longer follows {self._state.url}."


def leave(engine: Engine) -> None:
    """Stop following: the user's memories stay, others' go, and their unsent edits are parked."""
    with engine.store.feed.transaction() as connection:
        sql, state = connection.sql("replica"), load(connection)
        if state is not None:
            leaving = _Leaving(
                engine, connection, enqueue_changes(connection, state, state.place.sensitive)
            )
            leaving.remove_shared_copies()
            leaving.keep_branches()
        connection.execute("DELETE FROM meta WHERE name = :name", {"name": SYNC})
        connection.execute(sql["untold"])
        connection.execute(sql["forget_purges"])
        connection.execute(sql["purge_again"])
        connection.execute(sql["forget_waiting"])
        for table in ("replica", "replica_link", "replica_share", "carried"):
            connection.execute(f"DELETE FROM {table}")
