"""What leaves a laptop: purged, taken from its user, outside of its scopes, or withheld as sensitive."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.memory.redact import redact_one
from trivet.memory.remember import document_of
from trivet.store.relational.bundles import read_bundles
from trivet.sync import core
from trivet.sync.messages import Op, Withheld
from trivet.sync.outbox import Pending, forget
from trivet.sync.replica import Replica
from trivet.sync.sending import spelled_out
from trivet.sync.state import owner_here
from trivet.types import LOCAL


class Removing(Replica):
    """Takes copies away. What only this laptop knows is parked first, or stays."""

    def _bury(self, id: str, owner: str, first_rev: str | None) -> None:
        """Purge beats everything: the memory, what waits to be sent, what was refused."""
        whose = owner_here(self._state, owner)
        self._delete(id)
        forget(self._connection, id)
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
        kept = [dict(row) for row in self._connection.execute(self._sql["parked_of"], {"id": id}).fetchall()]
        self._delete(id)
        forget(self._connection, id)
        for row in kept:  # a purge by the user would take these too
            self._connection.execute(self._sql["park"], row)

    def _let_go(self, id: str, redacted: Sequence[str] = ()) -> None:
        """The server has it, and it is in none of the scopes that this laptop holds. What only this one knows stays."""
        row = self._connection.execute(self._connection.sql("memories")["by_id"], {"id": id}).fetchone()
        replica = self._replica(id)
        if row is None or (replica is None and row["owner"] != LOCAL):
            return
        stays = row["sensitive"] and not self._state.place.sensitive
        if self._pending(id) or stays or self._engine.store.secrets.of(id):
            if replica is not None:
                values = {"id": id, "epoch": core.outside(self._state.place.epoch), "seq": replica["seq"]}
                self._connection.execute(self._sql["set_place"], values)
            self._take_out(id, int(row["key"]), redacted)
            return
        self._park_written_while_sensitive(int(row["key"]))
        parts = [dict(row) for row in self._connection.execute(self._sql["parts_of"], {"id": id}).fetchall()]
        self._remove(id, "")
        for part in parts:  # nobody purged it: its file goes on being known as the one that it was read from
            self._connection.execute(self._connection.sql("vaults")["put_part"], part)

    def _park_written_while_sensitive(self, key: int) -> None:
        """Of one that is sensitive no longer. The server has the rest, and was told nothing of this."""
        if not self._state.place.sensitive:
            bundle = read_bundles(self._connection, [key])[key]
            told = tuple(rev for rev in bundle.trunk if not rev.fields.get("sensitive"))
            self._park_untold(msgspec.structs.replace(bundle, trunk=told))

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
                self._take_out(item.id, int(row["key"]), item.redacted)
                self._take_around(item, int(row["key"]))
            return
        values = {"id": item.id, "epoch": self._state.place.epoch or "", "seq": item.seq}
        self._connection.execute(self._sql["set_place"], values)
        key = replica["memory"]
        bundle = read_bundles(self._connection, [key])[key]
        if not bundle.head.fields.get("sensitive"):
            memory = msgspec.structs.replace(self._engine.store.all_memories.get(item.id), sensitive=True)
            self._engine.store.all_memories.replace(memory, document_of(memory), "edit")
        self._take_out(item.id, key, item.redacted)
        self._take_around(item, key)

    def _take_around(self, item: Withheld, key: int) -> None:
        """All but the words."""
        waiting = self._pending(item.id)
        if item.shares is not None:
            self._set_shares(key, item.id, item.shares, waiting)
        if item.links is not None:
            self._set_links(key, item.id, item.links, waiting)

    def _take_out(self, id: str, key: int, redacted: Sequence[str]) -> None:
        """Secrets, where their owner took them out of these revisions on another machine."""
        bundle = read_bundles(self._connection, [key])[key] if redacted else None
        if bundle is not None and (bundle.revs.keys() - set(core.redacted(bundle))) & set(redacted):
            redact_one(self._engine, self._engine.store.all_memories.get(id))

    def _park(self, one: Pending, reason: str) -> None:
        """Never dropped: what was refused waits with its words until the user decides."""
        op = spelled_out(self._connection, self._state, one)
        if one.kind == "heal" and op.bundle is not None:
            for rev, fields in core.edits_of(op.bundle, self._user):
                self._put_parked(Op(op=rev.rev, kind="edit", id=op.id, rev=rev.rev, fields=fields), reason)
            return
        self._put_parked(op, reason)
