"""Another id for a memory: where somebody else's has its own, and at join for ids that were made of names."""

from __future__ import annotations

import msgspec

from trivet.memory.engine import Engine
from trivet.secrets.seal import seal, unseal
from trivet.store.relational.database import WriteTransaction
from trivet.sync.outbox import forget, patches, told
from trivet.sync.removing import Removing


class Renaming(Removing):
    """Gives a memory of this laptop the id that the server gave it."""

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
