"""What leaves a laptop: purged, taken from its user, outside of its scopes, or withheld as sensitive.

Another id for a memory: where somebody else's has its own, and at join for ids that were made of names.

After a server was put back or has forgotten too much: what is one's own is sent again, all is read anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from trivet.memory.engine import Engine
from trivet.memory.lifecycle import redact_one
from trivet.memory.remember import document_of
from trivet.secrets.guard import seal, unseal
from trivet.store.records import Bundle, ShareRecord
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.tables.secrets import insert_secrets
from trivet.store.relational.tables.sync_bundles import read_bundles
from trivet.sync import core
from trivet.sync.laptop_state import (
    Detail,
    LaptopState,
    Pending,
    enqueue,
    forget_memory,
    local_owner,
    shares_known,
)
from trivet.sync.messages import Op, OtherEpoch, Withheld
from trivet.sync.outgoing import (
    heal_bundle,
    prepare_feedback,
    prepare_memories,
    server_bundle,
    to_op,
    unsent_edits,
)
from trivet.sync.replica import Replica
from trivet.types import LOCAL, Sealed


class ReplicaRemoval(Replica):
    """Takes copies away. What only this laptop knows is parked first, or stays."""

    def _record_purge(self, id: str, owner: str, first_rev: str | None) -> None:
        """Purge beats everything: the memory, what waits to be sent, what was refused."""
        whose = local_owner(self._state, owner)
        self._delete(id)
        forget_memory(self._connection, id)
        self._connection.execute(self._connection.sql("sync")["forget_parked"], {"id": id})
        values = {"id": id, "owner": whose, "seq": 0, "first_rev": first_rev}
        self._connection.execute(self._connection.sql("sync")["put_tombstone"], values)

    def _remove(self, id: str, reason: str) -> None:
        """It was taken from this user: row, vectors, graph and words go. One's own unsent words are parked first.

        So are those that a server which was put back has lost, until they were brought back.
        """
        for one in self._pending(id):
            if one.kind in ("create", "edit", "heal"):
                self._park(one, reason)
        kept = [
            dict(row)
            for row in self._connection.execute(self._sql["parked_of"], {"id": id}).fetchall()
        ]
        self._delete(id)
        forget_memory(self._connection, id)
        for row in kept:  # a purge by the user would take these too
            self._connection.execute(self._sql["park"], row)

    def _drop_out_of_scope(self, id: str, redacted: Sequence[str] = ()) -> None:
        """The server has it, and it is in none of the scopes that this laptop holds. What only this one knows stays."""
        row = self._connection.execute(
            self._connection.sql("memories")["by_id"], {"id": id}
        ).fetchone()
        replica = self._replica(id)
        if row is None or (replica is None and row["owner"] != LOCAL):
            return
        stays = row["sensitive"] and not self._state.place.sensitive
        if self._pending(id) or stays or self._engine.store.secrets.of(id):
            if replica is not None:
                values = {
                    "id": id,
                    "epoch": core.outside_epoch(self._state.place.epoch),
                    "seq": replica["seq"],
                }
                self._connection.execute(self._sql["set_place"], values)
            self._redact_revisions(id, int(row["key"]), redacted)
            return
        self._park_written_while_sensitive(int(row["key"]))
        parts = [
            dict(row)
            for row in self._connection.execute(self._sql["parts_of"], {"id": id}).fetchall()
        ]
        self._remove(id, "")
        for part in (
            parts
        ):  # nobody purged it: its file goes on being known as the one that it was read from
            self._connection.execute(self._connection.sql("vaults")["put_part"], part)

    def _park_written_while_sensitive(self, key: int) -> None:
        """Of one that is sensitive no longer. The server has the rest, and was told nothing of this."""
        if not self._state.place.sensitive:
            bundle = read_bundles(self._connection, [key])[key]
            told = tuple(rev for rev in bundle.trunk if not rev.fields.get("sensitive"))
            self._park_unsent(msgspec.structs.replace(bundle, trunk=told))

    def _delete(self, id: str) -> None:
        """Also out of the files. Without the tombstone that a purge by the user would leave."""
        if self._key(id) is not None:
            self._engine.store.all_memories.purge(id)
            self._connection.execute(self._sql["unbury"], {"id": id})

    def _withhold(self, item: Withheld) -> None:
        """Made sensitive elsewhere: what is here stays here, masked and without vectors, and is not synced."""
        replica = self._replica(item.id)
        if replica is None:
            # Here it is sensitive too, or the laptop has left since: the server was never known to have it.
            row = self._row(item.id)
            if row is not None and row["owner"] == LOCAL:
                self._redact_revisions(item.id, int(row["key"]), item.redacted)
                self._set_shares_and_links(item, int(row["key"]))
            return
        values = {"id": item.id, "epoch": self._state.place.epoch or "", "seq": item.seq}
        self._connection.execute(self._sql["set_place"], values)
        key = replica["memory"]
        bundle = read_bundles(self._connection, [key])[key]
        if not bundle.head.fields.get("sensitive"):
            memory = msgspec.structs.replace(
                self._engine.store.all_memories.get(item.id), sensitive=True
            )
            self._engine.store.all_memories.replace(memory, document_of(memory), "edit")
        self._redact_revisions(item.id, key, item.redacted)
        self._set_shares_and_links(item, key)

    def _set_shares_and_links(self, item: Withheld, key: int) -> None:
        """All but the words."""
        waiting = self._pending(item.id)
        if item.shares is not None:
            self._set_shares(key, item.id, item.shares, waiting)
        if item.links is not None:
            self._set_links(key, item.id, item.links, waiting)

    def _redact_revisions(self, id: str, key: int, redacted: Sequence[str]) -> None:
        """Secrets, where their owner took them out of these revisions on another machine."""
        bundle = read_bundles(self._connection, [key])[key] if redacted else None
        if bundle is not None and (bundle.revs.keys() - set(core.redacted(bundle))) & set(redacted):
            redact_one(self._engine, self._engine.store.all_memories.get(id))

    def _park(self, one: Pending, reason: str) -> None:
        """Never dropped: what was refused waits with its words until the user decides."""
        op = to_op(self._connection, self._state, one)
        if one.kind == "heal" and op.bundle is not None:
            for rev, fields in core.edits_of(op.bundle, self._user):
                self._park_op(
                    Op(op=rev.rev, kind="edit", id=op.id, rev=rev.rev, fields=fields), reason
                )
            return
        self._park_op(op, reason)


KNOWN_BY_OTHER_ID = "The server knows the memory by another id, which is sensitive on this machine."
# A vault's file goes on being read into its memory.
_VAULT_RENAMES = ("rename_parts", "rename_part_sources", "rename_part_targets")
# What waits to be sent follows its memory, also where a link names it.
_OUTBOX_RENAMES = ("move_outbox", "rename_queued_sources", "rename_queued_targets")


class ReplicaRenaming(ReplicaRemoval):
    """Gives a memory of this laptop the id that the server gave it."""

    def _rename(self, old: str, new: str) -> None:
        """The server has somebody else's memory under our id: ours gets another one, and every mention follows."""
        self._fresh = set()
        key = self._key(old)
        if key is None or not self._is_ours(old):
            return
        if self._is_purged(new):
            self._record_purge(old, self._user, None)
            self._connection.execute(self._sql["unbury"], {"id": old})
            return
        if self._key(new) is not None:
            self._absorb(old, new)
            return
        rename(self._engine, self._connection, old, new)

    def _absorb(self, old: str, new: str) -> None:
        """The server told the memory under its new id before it acknowledged it: what we have under the old is that.

        Or it never told it, since it is sensitive: then what was to be sent of the old one is kept beside.
        """
        secrets, replica = _secrets_moved(self._engine, old, new), self._replica(new)
        if replica is None:
            key = int(self._row(new)["key"])
            self._park_unsent(read_bundles(self._connection, [key])[key], here=old)
            self._remove(old, KNOWN_BY_OTHER_ID)
            self._connection.execute(self._sql["rename_parked"], {"old": old, "new": new})
            insert_secrets(self._connection, key, secrets)
            return
        edits = unsent_edits(self._connection, self._state, old)
        known = server_bundle(self._connection, self._state, replica)
        values = {"old": old, "new": new, "key": replica["memory"], "old_key": self._key(old)}
        for name in (*_OUTBOX_RENAMES, "move_feedback", "rename_parked", *_VAULT_RENAMES):
            self._connection.execute(self._sql[name], values)
        for one in self._pending(new):
            if one.kind == "create":
                self._connection.execute(self._sql["dequeue"], {"op": one.op})
        self._park_unsent(
            msgspec.structs.replace(known, trunk=core.with_pending_edits(known.trunk, edits)),
            here=old,
        )
        self._delete(old)
        forget_memory(self._connection, old)
        self._write(known, edits)
        insert_secrets(self._connection, replica["memory"], secrets)


def rename(engine: Engine, connection: WriteTransaction, old: str, new: str) -> None:
    """Another id for a memory, wherever it is named. Its secrets are bound to the id, so they are sealed anew."""
    sql = connection.sql("replica")
    row = connection.execute(connection.sql("memories")["by_id"], {"id": old}).fetchone()
    key = int(row["key"])
    sealed = _resealed(engine, old, new)
    values = {"old": old, "new": new, "key": key}
    connection.execute(sql["rename"], values)
    for name in ("rename_revisions", "rename_branches", "rename_links_from", "rename_links_to", *_VAULT_RENAMES,
                 "rename_proposals", "rename_replica", "rename_shares", "rename_parked", *_OUTBOX_RENAMES):  # fmt: skip
        connection.execute(sql[name], values)
    for one in sealed:
        connection.execute(
            connection.sql("secrets")["reseal"], {"id": new, **msgspec.structs.asdict(one)}
        )
    connection.note_change(key)


def _resealed(engine: Engine, old: str, new: str) -> list[Sealed]:
    """A memory's secrets as they are to be kept under its new id."""
    sealed = engine.store.secrets.of(old)
    if not sealed:
        return []
    keys, current = engine.guard.keys, engine.guard.keys.current()
    values = [(one, unseal(keys, old, one)) for one in sealed]
    return [
        seal(current, new, one.revision, one.field, one.kind, one.number, value)
        for one, value in values
    ]


def _secrets_moved(engine: Engine, old: str, new: str) -> list[Sealed]:
    """Those of the old name whose values the new one does not have here: the server told it without any."""
    held = {(one.kind, one.number) for one in engine.store.secrets.of(new)}
    return [one for one in _resealed(engine, old, new) if (one.kind, one.number) not in held]


class ReplicaHealing(ReplicaRenaming):
    """Takes in that the server is in another epoch, and what follows from it until everything is read."""

    def epoch(self, answer: OtherEpoch) -> LaptopState:
        if answer.known:
            place = core.continued_place(self._state.place, answer.epoch, self._state.full)
            return msgspec.structs.replace(self._state, place=place)
        return self.read_again() if answer.again else self.other_epoch(answer.epoch)

    def read_again(self) -> LaptopState:
        """Away for too long: everything is read anew, and what does not come any more was taken meanwhile."""
        self._connection.execute(self._sql["doubt_all"])
        place = msgspec.structs.replace(self._state.place, seq=0)
        return msgspec.structs.replace(self._state, place=place, full=True)

    def other_epoch(self, epoch: str) -> LaptopState:
        """What is one's own is sent again, then everything is pulled. Only an owner's machines re-assert purges."""
        for row in self._connection.execute(self._sql["all"]).fetchall():
            bundle = server_bundle(self._connection, self._state, row)
            if not core.may_heal(bundle, self._user):
                continue
            if core.is_withheld(bundle, self._state.place.sensitive):
                self._resend_unshares(row["id"], row["memory"], self._ever_shared_with(row["id"]))
            else:
                self._heal(row)
        self._resend_as_new()
        keys = [row[0] for row in self._connection.execute(self._sql["sensitive"]).fetchall()]
        prepare_memories(self._connection, keys, self._user, self._state.place.sensitive)
        for row in self._connection.execute(self._sql["all_links"]).fetchall():
            self._resend_link(row)
        # The server may be put back once more, to before this epoch, and count numbers again that the laptop has seen.
        self._connection.execute(self._sql["doubt_all"])
        self._connection.execute(self._sql["unbury_others"], {"me": LOCAL})
        for row in self._connection.execute(self._sql["tombstones"]).fetchall():
            if not any(one.kind == "purge" for one in self._pending(row["id"])):
                enqueue(
                    self._connection, "purge", row["id"], None, rev=row["first_rev"], first=True
                )
        self._resend_tag_unshares()
        self._connection.execute(self._sql["untold"])
        judged = [row[0] for row in self._connection.execute(self._sql["judged"]).fetchall()]
        prepare_feedback(self._connection, judged, self._state.place.sensitive)
        place = msgspec.structs.replace(self._state.place, epoch=epoch, seq=0, top=0, mark="")
        return msgspec.structs.replace(self._state, place=place, full=True)

    def _resend_as_new(self) -> None:
        """What the server took while it knew the memory as sensitive, it never told, and may have lost.

        All of it is sent as if it were new, but for the words of what is sensitive here.
        """
        rows = self._connection.execute(self._sql["without_beginning"]).fetchall()
        grantees = {row["id"]: self._ever_shared_with(row["id"]) for row in rows}
        for row in rows:
            forget_memory(self._connection, row["id"])
        keys = [row["memory"] for row in rows]
        prepare_memories(self._connection, keys, self._user, self._state.place.sensitive)
        for row in rows:
            self._resend_unshares(row["id"], row["memory"], grantees[row["id"]])

    def _ever_shared_with(self, id: str) -> set[str]:
        rows = [*self._connection.execute(self._sql["shares"], {"id": id}).fetchall()]
        rows += self._connection.execute(self._sql["ended_shares"], {"id": id}).fetchall()
        waiting = (one.detail.share for one in self._pending(id))
        return {row["grantee"] for row in rows} | {
            share.grantee for share in waiting if share is not None
        }

    def _resend_unshares(self, id: str, key: int, grantees: set[str]) -> None:
        """With those of them who have it no longer: a server that was put back may share it with them."""
        shared = {grantee for _, grantee in shares_known(self._connection, id)}
        for grantee in sorted(grantees - shared):
            share = ShareRecord(grantee=grantee, permission="read")
            enqueue(self._connection, "unshare", id, key, Detail(share=share))

    def _resend_tag_unshares(self) -> None:
        """Those that their owner ended: a server that was put back may have them in force again."""
        shared = {
            (row["tag"], row["grantee"])
            for row in self._connection.execute(self._sql["own_tag_shares"])
        }
        queued = [one.detail.share for one in self._pending("")]
        for row in self._connection.execute(self._sql["ended_shares"], {"id": ""}).fetchall():
            share = ShareRecord(tag=row["tag"], grantee=row["grantee"], permission="read")
            if (share.tag, share.grantee) not in shared and share not in queued:
                enqueue(self._connection, "unshare_tag", "", None, Detail(share=share), first=True)

    def _finish_full_pull(self, epoch: str) -> None:
        heard = {"epoch": epoch, "outside": core.outside_epoch(epoch)}
        for row in self._connection.execute(self._sql["other_epoch"], heard).fetchall():
            if row["access"] == "own":
                replica = self._replica(row["id"])
                if not core.is_withheld(
                    server_bundle(self._connection, self._state, replica),
                    self._state.place.sensitive,
                ):
                    self._heal(replica)
            else:
                self._remove(row["id"], "It is not shared with you any longer.")

    def _heal(self, replica: Any) -> None:
        bundle = heal_bundle(self._connection, self._state, replica["id"])
        values = {"key": replica["memory"], "bundle": msgspec.json.encode(bundle).decode()}
        self._connection.execute(self._sql["put_carried"], values)
        for one in self._pending(replica["id"]):
            if (
                one.kind == "heal"
            ):  # the server may have done it, with less, before the backup that it was put back from
                self._connection.execute(self._sql["dequeue"], {"op": one.op})
        enqueue(self._connection, "heal", replica["id"], replica["memory"], first=True)

    def _resend_link(self, row: Any) -> None:
        source = self._replica(row["source"])
        if source is None or source["access"] == "read":
            return
        links = read_bundles(self._connection, [source["memory"]])[source["memory"]].links
        link = next((one for one in links if one.ends == tuple(row)), None)
        queued = [
            one.detail.link.ends
            for one in self._pending(row["source"])
            if one.detail.link is not None
        ]
        if link is not None and link.ends not in queued:
            enqueue(self._connection, "link", link.source, source["memory"], Detail(link=link))

    def _confirm(self, bundle: Bundle) -> None:
        """The server has taken what was brought: all of one's own, and of another's memory what it says it has."""
        replica = self._replica(bundle.id)
        if replica is not None:
            row = self._connection.execute(
                self._sql["carried"], {"key": replica["memory"]}
            ).fetchone()
            own = bundle.owner == self._user
            if row is not None and (
                own or core.is_confirmed(msgspec.json.decode(row[0], type=Bundle), bundle)
            ):
                self._connection.execute(self._sql["drop_carried"], {"key": replica["memory"]})
