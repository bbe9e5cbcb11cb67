"""The ids of one memory: users may derive the same id, and a restored server reassigns ids."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.common.ids import is_name_based_id, reassigned_id
from trivet.memory_fields import as_json
from trivet.store.records import Bundle
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.tables.memory_rows import key_by_id
from trivet.store.relational.tables.sync_bundles import name_revisions, read_bundles
from trivet.sync.messages import Op


class MemoryAliases:
    """A user's memories on this server, by their ids and those that it gave them."""

    def __init__(self, connection: WriteTransaction, user: str) -> None:
        self._connection, self._user = connection, user
        self._sql = connection.sql("sync")
        # An owner's ids, keyed by the id each would be reassigned to.
        self._ids_by_alias: dict[str, dict[str, str]] = {}

    def held(self, id: str) -> tuple[int | None, Bundle | None]:
        """Return the key and the memory, if it is here."""
        key = key_by_id(self._connection, id)
        if key is None:
            return None, None
        name_revisions(self._connection, [key])
        return key, read_bundles(self._connection, [key])[key]

    def other_id(self, op: Op, id: str, held: Bundle | None) -> str | None:
        """Return the memory's id here if a restored server reassigned it."""
        owner = op.bundle.owner if op.bundle else self._user
        found = self._ids("begun_with", [first_revision(op)], owner)
        if not found and op.kind != "purge" and is_name_based_id(id):
            found = self._ids("beside_of", [first_revision(op)], owner)
        if found:
            return found[0] if found[0] != id else None
        if owner == self._user and self._belongs_to_another(id, held):
            return reassigned_id(id, self._user)
        if (held is not None and held.owner == owner) or self.is_purged(id):
            return None
        known = [reassigned_id(id, owner)] if op.kind == "create" else self.known_ids(id, owner)
        for name in known:
            other = self.held(name)[1]
            if other is not None and other.owner == owner and _is_same_memory(other, op):
                return name
        return None

    def _ids(self, query: str, revs: Sequence[str], owner: str) -> list[str]:
        values = {"revs": as_json(revs), "owner": owner}
        return [row[0] for row in self._connection.execute(self._sql[query], values).fetchall()]

    def known_ids(self, id: str, owner: str) -> list[str]:
        """Return other ids of an owner's memory.

        Finding ids that map to `id` hashes all of the owner's: too slow for each create of a first
        sync.
        """
        another = reassigned_id(id, owner)
        if not is_name_based_id(id):
            return [another]
        if owner not in self._ids_by_alias:
            rows = self._connection.execute(self._sql["ids_of"], {"owner": owner}).fetchall()
            self._ids_by_alias[owner] = {reassigned_id(row[0], owner): row[0] for row in rows}
        found = self._ids_by_alias[owner].get(id)
        return [another, found] if found else [another]

    def note_stored(self, id: str, owner: str) -> None:
        """Let `known_ids` find a memory stored since it read the owner's ids."""
        if owner in self._ids_by_alias:
            self._ids_by_alias[owner][reassigned_id(id, owner)] = id

    def _belongs_to_another(self, id: str, held: Bundle | None) -> bool:
        if held is not None:
            return held.owner != self._user
        gone = self._connection.execute(self._sql["tombstone"], {"id": id}).fetchone() is not None
        return gone and not self.is_purged(id)

    def is_purged(self, id: str) -> bool:
        whom = {"id": id, "viewer": self._user}
        return self._connection.execute(self._sql["tombstone_for"], whom).fetchone() is not None

    def purged(self, revs: Sequence[str]) -> set[str]:
        """Return those revisions with which the user's purged memories began."""
        if not revs:
            return set()
        values = {"owner": self._user, "revs": as_json(revs)}
        return {row[0] for row in self._connection.execute(self._sql["purged_as"], values)}

    def without_duplicates(self, id: str, brought: Bundle) -> Bundle:
        """Drop branches that the user's memory has under another id, or that were purged there."""
        if brought.owner != self._user or not brought.branches:
            return brought
        branched = [rev.rev for rev in brought.branches]
        repeated = self.purged(branched)
        known = self.known_ids(id, self._user)
        for name in {*known, *self._ids("begun_with", branched, self._user)} - {id}:
            other = self.held(name)[1]
            if other is not None and other.owner == self._user:
                repeated |= other.revs.keys()
        branches = tuple(rev for rev in brought.branches if rev.rev not in repeated)
        waiting = tuple(rev for rev in brought.waiting if rev not in repeated)
        return msgspec.structs.replace(brought, branches=branches, waiting=waiting)


def first_revision(op: Op) -> str:
    return op.bundle.trunk[0].rev if op.bundle else op.rev or ""


def _is_same_memory(held: Bundle, op: Op) -> bool:
    if op.kind == "purge":
        return held.trunk[0].rev == op.rev
    return bool(held.revs.keys() & (op.bundle.revs.keys() if op.bundle else {op.rev}))
