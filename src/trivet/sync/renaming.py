"""Another id for a memory: where somebody else's has its own, and at join for ids that were made of names."""

from __future__ import annotations

import msgspec

from trivet.memory.engine import Engine
from trivet.secrets.seal import seal, unseal
from trivet.store.relational.bundles import read_bundles
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.secrets import insert_secrets
from trivet.sync import core
from trivet.sync.outbox import forget
from trivet.sync.removing import Removing
from trivet.sync.sending import told, unsent
from trivet.types import Sealed

KNOWN_OTHERWISE = "The server knows the memory by another id, which is sensitive on this machine."
# A vault's file goes on being read into its memory.
_VAULT = ("rename_parts", "rename_part_sources", "rename_part_targets")
# What waits to be sent follows its memory, also where a link names it.
_QUEUED = ("move_outbox", "rename_queued_sources", "rename_queued_targets")


class Renaming(Removing):
    """Gives a memory of this laptop the id that the server gave it."""

    def _rename(self, old: str, new: str) -> None:
        """The server has somebody else's memory under our id: ours gets another one, and every mention follows."""
        self._fresh = set()
        key = self._key(old)
        if key is None or not self._is_ours(old):
            return
        if self._is_buried(new):
            self._bury(old, self._user, None)
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
            self._park_untold(read_bundles(self._connection, [key])[key], here=old)
            self._remove(old, KNOWN_OTHERWISE)
            self._connection.execute(self._sql["rename_parked"], {"old": old, "new": new})
            insert_secrets(self._connection, key, secrets)
            return
        edits = unsent(self._connection, self._state, old)
        known = told(self._connection, self._state, replica)
        values = {"old": old, "new": new, "key": replica["memory"], "old_key": self._key(old)}
        for name in (*_QUEUED, "move_feedback", "rename_parked", *_VAULT):
            self._connection.execute(self._sql[name], values)
        for one in self._pending(new):
            if one.kind == "create":
                self._connection.execute(self._sql["dequeue"], {"op": one.op})
        self._park_untold(msgspec.structs.replace(known, trunk=core.stacked(known.trunk, edits)), here=old)
        self._delete(old)
        forget(self._connection, old)
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
    for name in ("rename_revisions", "rename_branches", "rename_links_from", "rename_links_to", *_VAULT,
                 "rename_proposals", "rename_replica", "rename_shares", "rename_parked", *_QUEUED):  # fmt: skip
        connection.execute(sql[name], values)
    for one in sealed:
        connection.execute(connection.sql("secrets")["reseal"], {"id": new, **msgspec.structs.asdict(one)})
    connection.note_change(key)


def _resealed(engine: Engine, old: str, new: str) -> list[Sealed]:
    """A memory's secrets as they are to be kept under its new id."""
    sealed = engine.store.secrets.of(old)
    if not sealed:
        return []
    keys, current = engine.guard.keys, engine.guard.keys.current()
    values = [(one, unseal(keys, old, one)) for one in sealed]
    return [seal(current, new, one.revision, one.field, one.kind, one.number, value) for one, value in values]


def _secrets_moved(engine: Engine, old: str, new: str) -> list[Sealed]:
    """Those of the old name whose values the new one does not have here: the server told it without any."""
    held = {(one.kind, one.number) for one in engine.store.secrets.of(new)}
    return [one for one in _resealed(engine, old, new) if (one.kind, one.number) not in held]
