"""Removal, renaming and healing of a laptop's copies."""

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
from trivet.store.relational.tables.access import insert_secrets
from trivet.store.relational.tables.memory_rows import key_by_id
from trivet.store.relational.tables.sync_bundles import read_bundles
from trivet.sync import core
from trivet.sync.laptop_state import (
    Detail,
    LaptopState,
    Pending,
    enqueue,
    forget_memory,
    heal_bundle,
    local_owner,
    server_bundle,
    shares_known,
    unsent_edits,
    with_pending_edits,
)
from trivet.sync.messages import Op, OtherEpoch, Withheld
from trivet.sync.outgoing import prepare_feedback, prepare_memories, to_op
from trivet.sync.replica import Replica
from trivet.types import LOCAL, Sealed


class ReplicaRemoval(Replica):
    """Removal of copies; text that only this laptop has is parked first, or stays."""

    def _record_purge(self, id: str, owner: str, first_rev: str | None) -> None:
        whose = local_owner(self._state, owner)
        self._delete(id)
        forget_memory(self._connection, id)
        self._connection.execute(self._connection.sql("sync")["forget_parked"], {"id": id})
        values = {"id": id, "owner": whose, "seq": 0, "first_rev": first_rev}
        self._connection.execute(self._connection.sql("sync")["put_tombstone"], values)

    def _remove(self, id: str, reason: str) -> None:
        """Delete a memory that the user may no longer read, after parking unsent text."""
        for one in self._pending(id):
            if one.kind in ("create", "edit", "heal"):
                self._park(one, reason)
        kept = [
            dict(row)
            for row in self._connection.execute(self._sql["parked_of"], {"id": id}).fetchall()
        ]
        self._delete(id)
        forget_memory(self._connection, id)
        for row in kept:  # the deletion removed these too
            self._connection.execute(self._sql["park"], row)

    def _drop_out_of_scope(self, id: str, redacted: Sequence[str] = ()) -> None:
        """Delete a copy outside the scopes, unless only this laptop has some text of it."""
        row, replica = self._row(id), self._replica(id)
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
        for part in parts:  # not a purge, so the vault's file must stay known
            self._connection.execute(self._connection.sql("vaults")["put_part"], part)

    def _park_written_while_sensitive(self, key: int) -> None:
        if not self._state.place.sensitive:
            bundle = read_bundles(self._connection, [key])[key]
            sent = tuple(rev for rev in bundle.trunk if not rev.fields.get("sensitive"))
            self._park_unsent(msgspec.structs.replace(bundle, trunk=sent))

    def _delete(self, id: str) -> None:
        """Delete a memory, also from the files, without a tombstone."""
        if self._key(id) is not None:
            self._engine.store.all_memories.purge(id)
            self._connection.execute(self._sql["unbury"], {"id": id})

    def _withhold(self, item: Withheld) -> None:
        """Keep a memory that became sensitive elsewhere, masked, without vectors and unsynced."""
        replica = self._replica(item.id)
        if replica is None:
            # Sensitive here too, or the laptop left meanwhile: the server never had its text.
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
        waiting = self._pending(item.id)
        if item.shares is not None:
            self._set_shares(key, item.id, item.shares, waiting)
        if item.links is not None:
            self._set_links(key, item.id, item.links, waiting)

    def _redact_revisions(self, id: str, key: int, redacted: Sequence[str]) -> None:
        bundle = read_bundles(self._connection, [key])[key] if redacted else None
        if bundle is not None and (bundle.revs.keys() - set(core.redacted(bundle))) & set(redacted):
            redact_one(self._engine, self._engine.store.all_memories.get(id))

    def _park(self, one: Pending, reason: str) -> None:
        """Keep a refused operation with its text until the user drops it."""
        op = to_op(self._connection, self._state, one)
        if one.kind == "heal" and op.bundle is not None:
            for rev, fields in core.edits_of(op.bundle, self._user):
                self._park_op(
                    Op(op=rev.rev, kind="edit", id=op.id, rev=rev.rev, fields=fields), reason
                )
            return
        self._park_op(op, reason)


KNOWN_BY_OTHER_ID = (
    "The server has this memory under another id, which is sensitive on this machine."
)
_VAULT_RENAMES = ("rename_parts", "rename_part_sources", "rename_part_targets")
_OUTBOX_RENAMES = ("move_outbox", "rename_queued_sources", "rename_queued_targets")


class ReplicaRenaming(ReplicaRemoval):
    def _rename(self, old: str, new: str) -> None:
        self._fresh = set()
        key = self._key(old)
        if key is None or not self._is_ours(old):
            return
        if self._is_purged(new):
            self._record_purge(old, self._user, None)
            self._connection.execute(self._sql["unbury"], {"id": old})
            return
        if self._key(new) is not None:
            self._merge_old_id(old, new)
            return
        rename(self._engine, self._connection, old, new)

    def _merge_old_id(self, old: str, new: str) -> None:
        """Merge the memory under its old id into the copy under its new id.

        If sensitive, the server never sent it; then park the old one's unsent text.
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
            msgspec.structs.replace(known, trunk=with_pending_edits(known.trunk, edits)),
            here=old,
        )
        self._delete(old)
        forget_memory(self._connection, old)
        self._write(known, edits)
        insert_secrets(self._connection, replica["memory"], secrets)


def rename(engine: Engine, connection: WriteTransaction, old: str, new: str) -> None:
    """Change a memory's id everywhere and reseal its secrets, which are bound to it."""
    sql = connection.sql("replica")
    key = key_by_id(connection, old)
    assert key is not None, "the caller has just read it"
    sealed = _resealed(engine, old, new)
    values = {"old": old, "new": new, "key": key}
    connection.execute(sql["rename"], values)
    for name in (
        "rename_revisions",
        "rename_branches",
        "rename_links_from",
        "rename_links_to",
        *_VAULT_RENAMES,
        "rename_proposals",
        "rename_replica",
        "rename_shares",
        "rename_parked",
        *_OUTBOX_RENAMES,
    ):
        connection.execute(sql[name], values)
    for one in sealed:
        connection.execute(
            connection.sql("secrets")["reseal"], {"id": new, **msgspec.structs.asdict(one)}
        )
    connection.note_change(key)


def _resealed(engine: Engine, old: str, new: str) -> list[Sealed]:
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
    held = {(one.kind, one.number) for one in engine.store.secrets.of(new)}
    return [one for one in _resealed(engine, old, new) if (one.kind, one.number) not in held]


class ReplicaHealing(ReplicaRenaming):
    """Reactions to another epoch of the server."""

    def epoch(self, answer: OtherEpoch) -> LaptopState:
        if answer.known:
            place = core.continued_place(self._state.place, answer.epoch, self._state.full)
            return msgspec.structs.replace(self._state, place=place)
        return self.read_again() if answer.again else self.other_epoch(answer.epoch)

    def read_again(self) -> LaptopState:
        self._connection.execute(self._sql["doubt_all"])
        place = msgspec.structs.replace(self._state.place, seq=0)
        return msgspec.structs.replace(self._state, place=place, full=True)

    def other_epoch(self, epoch: str) -> LaptopState:
        """Queue the user's own data again, then pull everything."""
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
        # Another restore, to before this epoch, could reuse numbers seen here.
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
        """Send as new what the server had as sensitive and never sent back."""
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
        """Repeat ended shares, which may be in force again on a restored server."""
        shared = {grantee for _, grantee in shares_known(self._connection, id)}
        for grantee in sorted(grantees - shared):
            share = ShareRecord(grantee=grantee, permission="read")
            enqueue(self._connection, "unshare", id, key, Detail(share=share))

    def _resend_tag_unshares(self) -> None:
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
                self._remove(row["id"], "It is no longer shared with you.")

    def _heal(self, replica: Any) -> None:
        bundle = heal_bundle(self._connection, self._state, replica["id"])
        values = {"key": replica["memory"], "bundle": msgspec.json.encode(bundle).decode()}
        self._connection.execute(self._sql["put_carried"], values)
        for one in self._pending(replica["id"]):
            # The server may have done a smaller heal before its backup.
            if one.kind == "heal":
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
