"""The server's handling of a laptop's operations, within the transaction of their push."""

from __future__ import annotations

from contextlib import nullcontext

import msgspec

from trivet.common.clock import moment, now
from trivet.common.ids import check_id, reassigned_id
from trivet.common.threads import prepared_type
from trivet.contract import FeedbackRequest, ShareRequest, UnshareRequest
from trivet.errors import Conflict, InvalidInput, NotFound, SecretError, StoreError, TrivetError
from trivet.memory.admin.accounts import share, unshare
from trivet.memory.admin.importer import check_field_bounds
from trivet.memory.browse import feedback
from trivet.memory.engine import Engine
from trivet.memory.remember import check_memory, document_of
from trivet.memory_fields import as_json
from trivet.store.records import KNOWN_FIELDS, Bundle, Rev
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.tables.access import check_keys, insert_secrets
from trivet.store.relational.tables.ledgers import record_write
from trivet.store.relational.tables.memory_rows import key_by_id
from trivet.store.relational.tables.sync_bundles import (
    memory_at_revision,
    put_bundle,
)
from trivet.sync import core
from trivet.sync.aliases import MemoryAliases, first_revision
from trivet.sync.messages import OP_KINDS, Op, Result, check_op
from trivet.types import Link, Sealed

UNKNOWN_KIND = (
    "The server's Trivet is older and does not know the operation {}. It is sent again after an "
    "upgrade."
)

DEPENDS_ON_LATER = (
    "It depends on an operation that the server could not accept yet. Both are sent again."
)

Outcome = tuple[Result, str, str]  # the result, the memory's id, and the reason of a refusal

# Another user's memory may have these operations' id.
_MAY_GET_NEW_ID = ("create", "purge", "heal")


class PushProgress(msgspec.Struct):
    """What later operations of a push need: reassigned ids and memories that wait."""

    named: dict[str, str] = {}
    waiting: set[str] = set()

    def copied(self) -> PushProgress:
        return PushProgress(dict(self.named), set(self.waiting))


class OpApplier:
    def __init__(
        self, engine: Engine, connection: WriteTransaction, progress: PushProgress
    ) -> None:
        self._engine = engine
        self._connection = connection
        self._sql = connection.sql("sync")
        user = engine.viewer
        assert user is not None, "a laptop comes with a key"
        self.user = user
        self._new_ids, self._waiting = progress.named, progress.waiting
        self.healed: dict[str, int] = {}
        self._aliases = MemoryAliases(connection, user)

    def take(self, op: Op) -> Outcome:
        if op.kind not in OP_KINDS:
            return "later", op.id, UNKNOWN_KIND.format(op.kind)
        done = self._earlier_outcome(op)
        if done is not None:
            if op.kind in _MAY_GET_NEW_ID and done[1] != op.id:
                self._new_ids[op.id] = done[1]
            return done
        if self._waits(op):
            return "later", op.id, DEPENDS_ON_LATER
        given = op.id
        op = msgspec.structs.replace(op, id=self._new_ids.get(op.id, op.id))
        try:
            result, id = self._act(op)
            reason = ""
        except StoreError:
            raise
        except SecretError as error:  # a key is missing only for now
            self._waiting.add(given)
            return "later", given, str(error)
        except TrivetError as error:  # raised before anything is written
            result, id, reason = "refused", op.id, str(error)
        values = {"op": op.op, "result": result, "id": id, "reason": reason, "at": now()}
        self._connection.execute(self._sql["put_applied"], values)
        if result not in ("refused", "already") and id:
            record_write(self._connection, self.user, f"sync {op.kind}", [id])
        return result, id, reason

    def _waits(self, op: Op) -> bool:
        ends = (op.link.source, op.link.target) if op.link is not None else ()
        return not self._waiting.isdisjoint({op.id, *ends})

    def _earlier_outcome(self, op: Op) -> Outcome | None:
        row = self._connection.execute(self._sql["applied"], {"op": op.op}).fetchone()
        return None if row is None else (row["result"], row["id"], row["reason"])

    def _act(self, op: Op) -> tuple[Result, str]:
        check_op(op)
        if op.kind in ("share_tag", "unshare_tag"):
            return self._share(op), ""
        id = check_id(op.id)
        key, held = self._aliases.held(id)
        name = self._aliases.other_id(op, id, held) if op.kind in _MAY_GET_NEW_ID else None
        if name is not None:
            id = self._new_ids[op.id] = name
            bundle = msgspec.structs.replace(op.bundle, id=id) if op.bundle else None
            op = msgspec.structs.replace(op, id=id, bundle=bundle)
            key, held = self._aliases.held(id)
        if op.kind != "purge" and self._aliases.is_purged(id):
            return "purged", id
        if op.kind in ("create", "heal") and self._purged_under_alias(op, id, held):
            return "purged", id
        reason = core.refusal(held, op, self.user, self._access(key))
        if reason is not None:
            raise InvalidInput(reason)
        return self._perform(op, id, held), id

    def _perform(self, op: Op, id: str, held: Bundle | None) -> Result:
        if op.kind == "purge":
            return self._purge(op, id, held)
        if op.kind in ("share", "unshare"):
            return self._share(op)
        if op.kind in ("link", "unlink"):
            return self._link(op)
        if op.kind == "heal":
            return self._heal(op, held)
        if op.kind == "feedback":
            return self._record_feedback(op)
        if op.kind == "create":
            result, new = core.create(held, op, self.user)
        else:
            assert held is not None, "refused above"
            if op.kind == "edit":
                result, new = core.edit(held, op, self.user)
            else:
                result, new = (
                    core.resolve(held, op) if op.kind == "resolve" else core.scrub(held, op)
                )
        if result == "already" and held is not None and held.owner == self.user:
            new = core.redacted_like(held, op)
        if new is not held:
            takes_out = op.kind == "scrub" or result == "already"
            with self._engine.store.feed.erasing() if takes_out else nullcontext():
                self._write(held, new)
        return result

    def _purged_under_alias(self, op: Op, id: str, held: Bundle | None) -> bool:
        if op.bundle is not None and op.bundle.owner != self.user:
            return False
        purged = self._aliases.purged([first_revision(op)])
        for first_rev in purged:
            self._record_purge(id, held, first_rev)
        return bool(purged)

    def _access(self, key: int | None) -> str | None:
        if key is None:
            return None
        listed = {"keys": f"[{key}]", "viewer": self.user}
        if not self._connection.execute(self._sql["seen_keys"], listed).fetchone():
            return None
        return (
            "write"
            if self._connection.execute(self._sql["writable_of"], listed).fetchone()
            else "read"
        )

    def _write(self, held: Bundle | None, new: Bundle) -> None:
        """Store the bundle; new revisions are checked and guarded like those from the API."""
        known = held.revs if held else {}
        sealed: list[Sealed] = []

        def guarded(rev: Rev) -> Rev:
            return rev if known.get(rev.rev) == rev else self._protected(new, rev, sealed)

        new = msgspec.structs.replace(
            new, trunk=tuple(map(guarded, new.trunk)), branches=tuple(map(guarded, new.branches))
        )
        check_keys(self._connection, sealed)
        key = put_bundle(self._connection, new, new.owner, document_of)
        self._connection.note_change(key)
        insert_secrets(self._connection, key, sealed)

    def _protected(self, new: Bundle, rev: Rev, sealed: list[Sealed]) -> Rev:
        engine = self._engine
        try:
            memory = memory_at_revision(new.id, new.owner, rev)
        except msgspec.ValidationError as error:
            raise InvalidInput(str(error).replace("`", "")) from None
        if memory.sensitive and rev.number <= 1 and not engine.settings.sync_sensitive:
            raise InvalidInput(
                "This server does not accept sensitive memories; they stay on their machine."
            )
        check_field_bounds(memory)
        check_memory(engine, memory)
        protected = engine.guard.protect(
            memory,
            rev.number,
            lambda: [*engine.store.secrets.of(new.id), *sealed],
            recognise=new.owner == self.user,
        )
        if protected.memory == memory:
            return rev
        sealed += protected.secrets
        clean = msgspec.to_builtins(protected.memory)
        return msgspec.structs.replace(
            rev,
            fields={**rev.fields, **{name: clean[name] for name in KNOWN_FIELDS & clean.keys()}},
        )

    def _purge(self, op: Op, id: str, held: Bundle | None) -> Result:
        buried = self._aliases.is_purged(id)
        if not buried:
            self._record_purge(id, held, op.rev)
        if op.rev is not None:
            self._purge_aliases(op.rev, id)
        return "already" if buried else "applied"

    def _purge_aliases(self, first_rev: str, id: str) -> None:
        another = reassigned_id(id, self.user)
        for name in self._aliases.known_ids(id, self.user):
            other = self._aliases.held(name)[1]
            if other is not None and other.owner == self.user and other.trunk[0].rev == first_rev:
                self._engine.store.memories.purge(name)
        if not self._aliases.purged([first_rev]) and self._aliases.held(another)[1] is None:
            self._record_purge(another, None, first_rev)

    def _record_purge(self, id: str, held: Bundle | None, first_rev: str | None) -> None:
        """Purge a memory, even if never sent here: another machine may still send it."""
        if held is None:
            values = {"id": id, "owner": self.user, "seq": None, "first_rev": first_rev}
            self._connection.execute(self._sql["put_tombstone"], values)
        else:
            self._engine.store.memories.purge(id)

    def _share(self, op: Op) -> Result:
        assert op.share is not None, "checked before"
        self._engine.demand("share")
        user, permission = op.share.grantee, op.share.permission
        about = {"tag": op.share.tag} if op.kind.endswith("_tag") else {"id": op.id}
        if op.kind in ("share", "share_tag"):
            share(self._engine, ShareRequest(user=user, permission=permission, **about))
            return "applied"
        try:
            unshare(self._engine, UnshareRequest(user=user, **about))
        except NotFound:
            return "already"
        return "applied"

    def _link(self, op: Op) -> Result:
        assert op.link is not None, "checked before"
        links = self._engine.store.links
        source, target = (self._new_ids.get(id, id) for id in (op.link.source, op.link.target))
        if op.kind == "link":
            made = Link(
                kind=op.link.kind,
                source=source,
                target=target,
                created_at=moment(op.link.created_at),
            )
            return "applied" if links.add(made) else "already"
        try:
            links.remove(source, op.link.kind, target)
        except NotFound:
            return "already"
        return "applied"

    def _record_feedback(self, op: Op) -> Result:
        for one in op.feedback:
            values = {"id": op.id, "verdict": one.verdict, "query": one.query or None}
            try:
                request = msgspec.convert(values, prepared_type(FeedbackRequest))
            except msgspec.ValidationError as error:
                raise InvalidInput(f"feedback: {error}") from None
            feedback(self._engine, request)
        return "applied"

    def _heal(self, op: Op, held: Bundle | None) -> Result:
        assert op.bundle is not None, "checked before"
        healed = int(self._connection.execute(self._sql["healed"], {"id": op.id}).fetchone()[0])
        brought = self._aliases.without_duplicates(op.id, op.bundle)
        shared = held is not None and self._shared_with(op.id)
        may_share = self._engine.caller is None or "share" in self._engine.caller.rights
        ended = op.ended if may_share else ()
        if not may_share:  # without that right, a key restores text but changes no shares
            brought = msgspec.structs.replace(brought, shares=held.shares if held else ())
        decided = core.heal(
            held,
            brought,
            self.user,
            shared,
            healed,
            self._revoked_grantees(op.id, held, brought),
            ended,
        )
        if decided is None:
            raise Conflict(
                "The server was restored without this memory; its owner's machine must send it "
                "again."
            )
        result, new = decided
        self._write(held, new)
        self._aliases.note_stored(op.id, new.owner)
        self._set_shares(op.id, held, new)
        if brought.owner == self.user:
            self.healed[op.id] = max(self.healed.get(op.id, 0), brought.seq)
            for grantee in ended:  # for another machine that does not know of it yet
                values = {"grantee": grantee, "seq": 0, "id": op.id, "purged": None, "at": now()}
                self._connection.execute(self._sql["put_revoked"], values)
        return result

    def _revoked_grantees(self, id: str, held: Bundle | None, brought: Bundle) -> set[str]:
        grantees = (
            {one.grantee for one in brought.shares}
            if held is None or held.shares != brought.shares
            else ()
        )
        values = {"id": id, "grantees": as_json(sorted(grantees))}
        return (
            {row[0] for row in self._connection.execute(self._sql["taken_from"], values)}
            if grantees
            else set()
        )

    def _shared_with(self, id: str) -> bool:
        return self._access(key_by_id(self._connection, id)) == "write"

    def _set_shares(self, id: str, held: Bundle | None, new: Bundle) -> None:
        before = {one.grantee: one.permission for one in (held.shares if held else ())}
        after = {one.grantee: one.permission for one in new.shares}
        for grantee in before.keys() - after.keys():
            self._engine.store.shares.unshare_memory(id, grantee)
        for grantee, permission in after.items():
            if before.get(grantee) != permission and not new.head.fields.get("sensitive"):
                self._engine.store.shares.share_memory(id, grantee, permission)
