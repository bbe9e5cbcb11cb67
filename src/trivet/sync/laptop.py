"""The laptop's side of sync: takes in an answer of the server, in one transaction with the place it then stands at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trivet.clock import now
from trivet.elapsed import look
from trivet.memory.engine import Engine
from trivet.memory.remember import document_of
from trivet.secrets.seal import seal, unseal
from trivet.store.relational.bundles import put_bundle, read_bundles
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.feed import last_change
from trivet.store.relational.memories import clear_derived, restate, write_derived
from trivet.store.sync_records import Bundle, Rev, ShareRecord
from trivet.sync import core
from trivet.sync.messages import Ack, Acks, Answer, Gone, Item, Op, OtherEpoch, Outside, Page, Place, Purged, Withheld
from trivet.sync.outbox import (
    Detail,
    Ends,
    Pending,
    Shares,
    brought,
    digest_of_known,
    enqueue,
    forget,
    outgoing,
    patches,
    pending,
    pending_of,
    prepare,
    prepare_feedback,
    said,
    spelled_out,
    told,
    with_pending_links,
    with_pending_shares,
)
from trivet.sync.state import LaptopState, load, owner_here, save
from trivet.types import LOCAL, Permission

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
            return state.place, outgoing(connection, state, most)

    def receive(self, asked: Place, answer: Answer) -> bool:
        """Takes in an answer; False if it came too late to count."""
        with self._database.transaction() as connection:
            state = self._prepared(connection)
            if not core.counts(state.place, asked, answer):
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
        return prepare(connection, state, state.place.sensitive)


class _Taking:
    """One answer, within its transaction."""

    def __init__(self, engine: Engine, connection: WriteTransaction, state: LaptopState) -> None:
        self._engine = engine
        self._connection = connection
        self._state = state
        self._user = state.user
        self._sql = connection.sql("replica")
        self._fresh: set[str] = set()  # memories of a page that nothing here has heard of: most of a first sync

    def in_contact(self, state: LaptopState) -> LaptopState:
        if state.hidden:
            show_others(self._connection)
        # What is written here is no news to send.
        last = last_change(self._connection)
        return msgspec.structs.replace(state, contact=now(), hidden=False, away=0.0, looked=look(), change=last)

    # ---- answers

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

    def epoch(self, answer: OtherEpoch) -> LaptopState:
        if answer.known:
            place = core.gone_on(self._state.place, answer.epoch, self._state.full)
            return msgspec.structs.replace(self._state, place=place)
        return self.read_again() if answer.again else self.other_epoch(answer.epoch)

    def _heard_of(self, ids: Sequence[str]) -> set[str]:
        listed = {"ids": msgspec.json.encode(ids).decode()}
        return {row[0] for row in self._connection.execute(self._sql["heard_of"], listed).fetchall()}

    def read_again(self) -> LaptopState:
        """Away for too long: everything is read anew, and what does not come any more was taken meanwhile."""
        self._connection.execute(self._sql["doubt_all"])
        place = msgspec.structs.replace(self._state.place, seq=0)
        return msgspec.structs.replace(self._state, place=place, full=True)

    def other_epoch(self, epoch: str) -> LaptopState:
        """What is one's own is sent again, then everything is pulled. Only an owner's machines re-assert purges."""
        for row in self._connection.execute(self._sql["all"]).fetchall():
            if core.must_heal(told(self._connection, self._state, row), self._user):
                self._heal(row)
        for row in self._connection.execute(self._sql["all_links"]).fetchall():
            self._resend_link(row)
        self._connection.execute(self._sql["unbury_others"], {"me": LOCAL})
        for row in self._connection.execute(self._sql["tombstones"]).fetchall():
            if not any(one.kind == "purge" for one in self._pending(row["id"])):
                enqueue(self._connection, "purge", row["id"], None, first=True)
        self._end_tag_shares_again()
        self._connection.execute(self._sql["untold"])
        judged = [row[0] for row in self._connection.execute(self._sql["judged"]).fetchall()]
        prepare_feedback(self._connection, judged, self._state.place.sensitive)
        place = msgspec.structs.replace(self._state.place, epoch=epoch, seq=0, top=0, mark="")
        return msgspec.structs.replace(self._state, place=place, full=True)

    def _end_tag_shares_again(self) -> None:
        """Those that their owner ended: a server that was put back may have them in force again."""
        shared = {(row["tag"], row["grantee"]) for row in self._connection.execute(self._sql["own_tag_shares"])}
        queued = [one.detail.share for one in self._pending("")]
        for row in self._connection.execute(self._sql["ended_tag_shares"]).fetchall():
            share = ShareRecord(tag=row["tag"], grantee=row["grantee"], permission="read")
            if (share.tag, share.grantee) not in shared and share not in queued:
                enqueue(self._connection, "unshare_tag", "", None, Detail(share=share), first=True)

    def _finish_full_pull(self, epoch: str) -> None:
        for row in self._connection.execute(self._sql["other_epoch"], {"epoch": epoch}).fetchall():
            if row["access"] == "own":
                self._heal(self._replica(row["id"]))
            else:
                self._remove(row["id"], "It is not shared with you any longer.")

    def _heal(self, replica: Any) -> None:
        bundle = brought(self._connection, self._state, replica["id"])
        values = {"key": replica["memory"], "bundle": msgspec.json.encode(bundle).decode()}
        self._connection.execute(self._sql["put_carried"], values)
        if not any(one.kind == "heal" for one in self._pending(replica["id"])):
            enqueue(self._connection, "heal", replica["id"], replica["memory"], first=True)

    def _resend_link(self, row: Any) -> None:
        source = self._replica(row["source"])
        if source is None or source["access"] == "read":
            return
        links = read_bundles(self._connection, [source["memory"]])[source["memory"]].links
        link = next((one for one in links if one.ends == tuple(row)), None)
        queued = [one.detail.link.ends for one in self._pending(row["source"]) if one.detail.link is not None]
        if link is not None and link.ends not in queued:
            enqueue(self._connection, "link", link.source, source["memory"], Detail(link=link))

    # ---- one acknowledgement

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
            self._bury(ack.id, self._user)
        if ack.result == "refused":
            self._park(mine, ack.reason)
            if mine.kind == "feedback":
                for name in ("unsay", "unsay_new"):
                    self._connection.execute(self._sql[name], {"key": mine.memory})
        self._connection.execute(self._sql["dequeue"], {"op": ack.op})
        if ack.item is not None:
            self.take(ack.item)
        elif self._replica(mine.id) is not None:
            self._settle(mine.id)
        if mine.kind == "heal" and isinstance(ack.item, Bundle):
            self._confirm(ack.item)

    def _confirm(self, bundle: Bundle) -> None:
        replica = self._replica(bundle.id)
        if replica is not None:
            row = self._connection.execute(self._sql["carried"], {"key": replica["memory"]}).fetchone()
            if row is not None and core.is_confirmed(msgspec.json.decode(row[0], type=Bundle), bundle):
                self._connection.execute(self._sql["drop_carried"], {"key": replica["memory"]})

    def _park(self, one: Pending, reason: str) -> None:
        """Never dropped: what was refused waits with its words until the user decides."""
        op = spelled_out(self._connection, self._state, one)
        if one.kind == "heal" and op.bundle is not None:
            for rev in op.bundle.revs.values():
                if rev.author == self._user:
                    self._put_parked(Op(op=rev.rev, kind="edit", id=op.id, rev=rev.rev, fields=rev.fields), reason)
            return
        self._put_parked(op, reason)

    def _put_parked(self, op: Op, reason: str) -> None:
        values = {"op": op.op, "kind": op.kind, "id": op.id, "rev": op.rev, "reason": reason, "at": now()}
        self._connection.execute(self._sql["park"], {**values, "body": msgspec.json.encode(op).decode()})

    # ---- one memory

    def take(self, item: Item) -> None:
        if isinstance(item, Bundle):
            self._take_bundle(item)
        elif isinstance(item, Purged):
            self._bury(item.id, item.owner)
        elif isinstance(item, Gone):
            replica = self._replica(item.id)
            if replica is not None and replica["access"] != "own":
                self._remove(item.id, "It is not shared with you any longer.")
        elif isinstance(item, Outside):
            for id in item.ids:
                self._let_go(id)
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
        replica = self._replica(bundle.id)
        known = (replica["epoch"], replica["seq"]) if replica is not None else None
        # The same number is the same state, and tells anew what an operation that was refused had hidden.
        if known is None or known == (bundle.epoch, bundle.seq) or core.is_news(*known, bundle):
            self._write(bundle)
        else:
            self._settle(bundle.id)

    def _settle(self, id: str) -> None:
        """What the server last told, with the edits that still wait on top."""
        replica = self._replica(id)
        self._write(told(self._connection, self._state, replica))

    def _write(self, bundle: Bundle, more: Sequence[tuple[Rev, Any]] = ()) -> None:
        """`more` are further edits of one's own, which were made under another id."""
        fresh = bundle.id in self._fresh
        waiting = [] if fresh else self._pending(bundle.id)
        known = bundle.revs
        before = patches(self._connection, bundle.id) if waiting else []
        edits = [one for one in (*before, *more) if one[0].rev not in known]
        created = [said(self._connection, one) for one in waiting if one.kind == "create"]
        settled = {rev for one in waiting if one.kind == "resolve" for rev in one.detail.revs}
        unsent = tuple(msgspec.structs.replace(rev, number=0) for rev in created if rev.rev not in known)
        local = msgspec.structs.replace(
            bundle,
            trunk=core.stacked(bundle.trunk, edits),
            branches=(*bundle.branches, *unsent),
            waiting=tuple(rev for rev in bundle.waiting if rev not in settled),
        )
        owner = owner_here(self._state, bundle.owner)
        key = put_bundle(self._connection, local, owner, document_of, {rev.rev for rev in unsent}, fresh)
        self._connection.execute(
            self._sql["put"],
            {
                "id": bundle.id,
                "memory": key,
                "epoch": bundle.epoch,
                "seq": bundle.seq,
                "head": bundle.head.rev,
                "revision": bundle.head.number,
                "access": bundle.access,
                "digest": digest_of_known(bundle, bundle.head.number),
            },
        )
        if bundle.shares or bundle.access != "own" or not fresh:
            self._set_shares(key, bundle, waiting)
        if bundle.links or not fresh:
            self._set_links(key, bundle, waiting)
        if bundle.feedback or not fresh:
            self._set_feedback(key, bundle)

    def _set_feedback(self, key: int, bundle: Bundle) -> None:
        """As the server told it, under what was said here since."""
        for one in bundle.feedback:
            values = {"memory": key, "query": one.query, "verdict": one.verdict, "at": one.at or now()}
            self._connection.execute(self._sql["put_told"], values)
        prepare_feedback(self._connection, [key], self._state.place.sensitive)

    def _set_shares(self, key: int, bundle: Bundle, waiting: Sequence[Pending]) -> None:
        """One's own: with whom it is shared. Another's: what this user may do with it, as a share with them."""
        self._connection.execute(self._sql["delete_shares"], {"id": bundle.id})
        for one in bundle.shares:
            values = {"id": bundle.id, "tag": "", "grantee": one.grantee, "permission": one.permission}
            self._connection.execute(self._sql["put_share"], values)
        known: Shares = {("", one.grantee): one.permission for one in bundle.shares}
        wanted = {grantee: permission for (_, grantee), permission in with_pending_shares(known, waiting).items()}
        if bundle.access != "own":
            wanted = {} if self._state.hidden else {LOCAL: bundle.access}
        self._share_with(key, wanted)

    def _share_with(self, key: int, wanted: Mapping[str, Permission]) -> None:
        sql = self._connection.sql("shares")
        rows = self._connection.execute(self._connection.sql("sync")["shares_of"], {"keys": f"[{key}]"}).fetchall()
        held = {row["grantee"]: row["permission"] for row in rows}
        for grantee in held.keys() - wanted.keys():
            self._connection.execute(sql["unshare_memory"], {"key": key, "user": grantee})
        for grantee, permission in wanted.items():
            if held.get(grantee) != permission:
                named = {"user": grantee, "permission": permission, "created_at": now()}
                self._connection.execute(sql["share_memory"], {"key": key, **named})
        if held != wanted:
            self._connection.note_change(key)

    def _set_links(self, key: int, bundle: Bundle, waiting: Sequence[Pending]) -> None:
        """The server's complete set and what waits to be sent, between memories that are here."""
        told = {one.ends: one for one in bundle.links}
        held = {one.ends: one for one in read_bundles(self._connection, [key])[key].links}
        ids = {bundle.id} | {id for ends in (*told, *held) for id in (ends[0], ends[2])}
        queued = [one for id in sorted(ids) for one in (waiting if id == bundle.id else self._pending(id))]
        wanted = {ends for ends in with_pending_links(told.keys(), queued) if bundle.id in (ends[0], ends[2])}
        self._connection.execute(self._sql["delete_links"], {"id": bundle.id})
        for ends in told:
            if self._is_here(ends):
                values = dict(zip(("source", "kind", "target"), ends, strict=True))
                self._connection.execute(self._sql["put_link"], values)
        for ends in held.keys() - wanted:
            if self._takes_part(ends[0]) and self._takes_part(ends[2]):
                self._unlink(ends)
        for ends in wanted - held.keys():
            if self._is_here(ends):
                self._link(ends, told[ends].created_at if ends in told else "")

    def _link(self, ends: Ends, at: str) -> None:
        source, target = self._key(ends[0]), self._key(ends[2])
        values = {"source": source, "kind": ends[1], "target": target, "created_at": at or now()}
        self._connection.execute(self._connection.sql("links")["insert"], values)
        self._after_link(source, target)

    def _unlink(self, ends: Ends) -> None:
        source, target = self._key(ends[0]), self._key(ends[2])
        values = {"source": source, "kind": ends[1], "target": target}
        self._connection.execute(self._connection.sql("links")["delete"], values)
        self._after_link(source, target)

    def _after_link(self, source: int | None, target: int | None) -> None:
        for key in (source, target):
            if key is not None:
                restate(self._connection, key)
                self._connection.note_change(key)

    def _is_here(self, ends: Ends) -> bool:
        return self._key(ends[0]) is not None and self._key(ends[2]) is not None

    def _takes_part(self, id: str) -> bool:
        return self._replica(id) is not None

    # ---- what goes

    def _bury(self, id: str, owner: str) -> None:
        """Purge beats everything: the memory, what waits to be sent, what was refused."""
        whose = owner_here(self._state, owner)
        self._delete(id)
        forget(self._connection, id)
        self._connection.execute(self._connection.sql("sync")["forget_parked"], {"id": id})
        values = {"id": id, "owner": whose, "seq": 0}
        self._connection.execute(self._connection.sql("sync")["put_tombstone"], values)

    def _remove(self, id: str, reason: str) -> None:
        """It was taken from this user: row, vectors, graph and words go. One's own unsent words are parked first."""
        for one in self._pending(id):
            if one.kind in ("create", "edit"):
                self._park(one, reason)
        kept = [dict(row) for row in self._connection.execute(self._sql["parked_of"], {"id": id}).fetchall()]
        self._delete(id)
        forget(self._connection, id)
        for row in kept:  # a purge by the user would take these too
            self._connection.execute(self._sql["park"], row)

    def _let_go(self, id: str) -> None:
        """The server has it, and it is in none of the scopes that this laptop holds. What only this one knows stays."""
        row = self._connection.execute(self._connection.sql("memories")["by_id"], {"id": id}).fetchone()
        replica = self._replica(id)
        if row is None or (replica is None and row["owner"] != LOCAL):
            return
        if self._pending(id) or (row["sensitive"] and not self._state.place.sensitive):
            if replica is not None:
                values = {"id": id, "epoch": self._state.place.epoch or "", "seq": replica["seq"]}
                self._connection.execute(self._sql["set_place"], values)
            return
        self._remove(id, "")

    def _delete(self, id: str) -> None:
        """Also out of the files. Without the tombstone that a purge by the user would leave."""
        if self._key(id) is not None:
            self._engine.store.all_memories.purge(id)
            self._connection.execute(self._sql["unbury"], {"id": id})

    def _withhold(self, item: Withheld) -> None:
        """Made sensitive elsewhere: what is here stays here, masked and without vectors, and is not synced."""
        replica = self._replica(item.id)
        if replica is None:
            return
        values = {"id": item.id, "epoch": self._state.place.epoch or "", "seq": item.seq}
        self._connection.execute(self._sql["set_place"], values)
        key = replica["memory"]
        bundle = read_bundles(self._connection, [key])[key]
        if not bundle.head.fields.get("sensitive"):
            self._connection.execute("UPDATE memory SET sensitive = 1 WHERE key = :key", {"key": key})
            memory = self._engine.store.all_memories.get(item.id)
            clear_derived(self._connection, key)
            write_derived(self._connection, key, memory, document_of(memory))

    def _set_tag_shares(self, tags: Sequence[ShareRecord]) -> None:
        told: Shares = {(one.tag, one.grantee): one.permission for one in tags}
        wanted = with_pending_shares(told, self._pending(""))
        known = self._connection.execute(self._sql["shares"], {"id": ""}).fetchall()
        known += self._connection.execute(self._sql["ended_tag_shares"]).fetchall()
        ended = {(row["tag"], row["grantee"]) for row in known} - told.keys()
        rows = self._connection.execute(self._sql["own_tag_shares"]).fetchall()
        for tag, grantee in {(row["tag"], row["grantee"]) for row in rows} - wanted.keys():
            self._connection.execute(self._sql["delete_tag_share"], {"tag": tag, "grantee": grantee})
        self._connection.execute(self._sql["delete_shares"], {"id": ""})
        for (tag, grantee), permission in told.items():
            values = {"id": "", "tag": tag, "grantee": grantee, "permission": permission}
            self._connection.execute(self._sql["put_share"], values)
        for tag, grantee in sorted(ended):
            values = {"id": "", "tag": tag, "grantee": grantee, "permission": "ended"}
            self._connection.execute(self._sql["put_share"], values)
        for (tag, grantee), permission in wanted.items():
            values = {"tag": tag, "grantee": grantee, "permission": permission, "at": now()}
            self._connection.execute(self._sql["put_tag_share"], values)

    # ---- another id

    def _rename(self, old: str, new: str) -> None:
        """The server has somebody else's memory under our id: ours gets another one, and every mention follows."""
        self._fresh = set()
        key = self._key(old)
        if key is None or not self._is_ours(old):
            return
        if self._is_buried(new):
            self._bury(old, self._user)
            self._connection.execute(self._sql["unbury"], {"id": old})
            return
        if self._key(new) is not None:
            self._absorb(old, new)
            return
        rename(self._engine, self._connection, old, new)

    def _absorb(self, old: str, new: str) -> None:
        """The server told the memory under its new id before it acknowledged it: what we have under the old is that."""
        edits = patches(self._connection, old)
        replica = self._replica(new)
        known = told(self._connection, self._state, replica)
        self._connection.execute(self._sql["move_outbox"], {"old": old, "new": new, "key": replica["memory"]})
        for one in self._pending(new):
            if one.kind == "create":
                self._connection.execute(self._sql["dequeue"], {"op": one.op})
        self._delete(old)
        forget(self._connection, old)
        self._write(known, edits)

    # ---- small questions

    def _replica(self, id: str) -> Any:
        return self._connection.execute(self._sql["by_id"], {"id": id}).fetchone()

    def _key(self, id: str) -> int | None:
        row = self._connection.execute(self._connection.sql("memories")["by_id"], {"id": id}).fetchone()
        return None if row is None else int(row["key"])

    def _is_ours(self, id: str) -> bool:
        row = self._connection.execute(self._connection.sql("memories")["by_id"], {"id": id}).fetchone()
        return row is not None and row["owner"] == LOCAL

    def _pending(self, id: str) -> list[Pending]:
        return pending(self._connection, id)

    def _is_buried(self, id: str) -> bool:
        return self._connection.execute(self._connection.sql("sync")["tombstone"], {"id": id}).fetchone() is not None


def rename(engine: Engine, connection: WriteTransaction, old: str, new: str) -> None:
    """Another id for a memory, wherever it is named. Its secrets are bound to the id, so they are sealed anew."""
    sql = connection.sql("replica")
    row = connection.execute(connection.sql("memories")["by_id"], {"id": old}).fetchone()
    key = int(row["key"])
    sealed = engine.store.secrets.of(old)
    values = {"old": old, "new": new, "key": key}
    connection.execute(sql["rename"], values)
    for name in ("rename_revisions", "rename_branches", "rename_links_from", "rename_links_to", "rename_parts",
                 "rename_part_sources", "rename_part_targets", "rename_proposals", "rename_replica",
                 "rename_shares", "rename_parked", "move_outbox"):  # fmt: skip
        connection.execute(sql[name], values)
    current = engine.guard.keys.current() if sealed else None
    for one in sealed:
        assert current is not None
        value = unseal(engine.guard.keys, old, one)
        again = seal(current, new, one.revision, one.field, one.kind, one.number, value)
        connection.execute(connection.sql("secrets")["reseal"], {"id": new, **msgspec.structs.asdict(again)})
    connection.note_change(key)


def show_others(connection: WriteTransaction) -> None:
    connection.execute(connection.sql("replica")["show_others"], {"at": now()})
    for row in connection.execute(connection.sql("replica")["others"]).fetchall():
        connection.note_change(row[0])
