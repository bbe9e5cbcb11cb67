"""A laptop's copies of memories: the server's state with unsent local changes on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import msgspec

from trivet.common.clock import now
from trivet.memory.engine import Engine
from trivet.memory.lifecycle import redact_one
from trivet.memory.remember import document_of
from trivet.secrets.guard import unseal
from trivet.store.records import Access, Bundle, LinkRecord, Rev, ShareRecord, changes_between
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.tables.links import update_superseded_state
from trivet.store.relational.tables.memory_rows import key_by_id, row_by_id
from trivet.store.relational.tables.sync_bundles import put_bundle, read_bundles
from trivet.sync import core
from trivet.sync.laptop_state import (
    Detail,
    Edit,
    Ends,
    LaptopState,
    Pending,
    Shares,
    enqueue,
    local_owner,
    pending,
    revision_of,
    server_bundle,
    unsent_edits,
    with_pending_edits,
    with_pending_links,
    with_pending_shares,
)
from trivet.sync.messages import Op
from trivet.sync.outgoing import digest_of_known, prepare_feedback, prepare_memories
from trivet.types import LOCAL, Permission

# Stored with parked operations, and `conflicts.refused` masks by it: never change this text.
WRITTEN_WHILE_SENSITIVE = (
    "It was written while the memory was sensitive, and stays on this machine."
)
UNKNOWN_ON_SERVER = "The server has another memory under this id and does not have this one."
UNKNOWN_BRANCH = "This branch belongs to a resolved conflict that this server does not know."


class Replica:
    def __init__(self, engine: Engine, connection: WriteTransaction, state: LaptopState) -> None:
        self._engine = engine
        self._connection = connection
        self._state = state
        self._user = state.user
        self._sql = connection.sql("replica")
        # New memories of a page: most of a first sync.
        self._fresh: set[str] = set()

    def _settle(self, id: str) -> None:
        if not self._is_withheld(id):
            self._write(server_bundle(self._connection, self._state, self._replica(id)))

    def _is_withheld(self, id: str) -> bool:
        row = self._row(id)
        return (
            row is not None
            and row["owner"] == LOCAL
            and bool(row["sensitive"])
            and not self._state.place.sensitive
        )

    def _write(self, bundle: Bundle, more: Sequence[Edit] = ()) -> None:
        """Write a copy; `more` are the user's edits made under another id."""
        fresh = bundle.id in self._fresh
        waiting = [] if fresh else self._pending(bundle.id)
        differing = {} if fresh else self._differing(bundle)
        redacted = self._redacted_here(bundle, differing)
        rewritten = bool(differing.keys() - redacted.keys())
        bundle = self._with_redactions(bundle, waiting, redacted)
        local, unknown = self._with_unsent(bundle, waiting, more)
        if not fresh:
            self._park_unsent(local)
        owner = local_owner(self._state, bundle.owner)
        with self._engine.store.feed.erasing() if rewritten else nullcontext():
            key = put_bundle(self._connection, local, owner, document_of, unknown, fresh)
        self._put_replica(key, bundle)
        if bundle.shares or bundle.access != "own" or not fresh:
            self._set_shares(key, bundle.id, bundle.shares, waiting, bundle.access)
        if bundle.links or not fresh:
            self._set_links(key, bundle.id, bundle.links, waiting)
        if bundle.feedback or not fresh:
            self._set_feedback(key, bundle)
        if redacted:
            enqueue(self._connection, "scrub", bundle.id, key, Detail(revs=tuple(redacted)))
        if rewritten and bundle.access == "own":
            self._redact_beside(bundle.id)

    def _with_unsent(
        self, bundle: Bundle, waiting: Sequence[Pending], more: Sequence[Edit]
    ) -> tuple[Bundle, set[str]]:
        """Add unsent changes; also return the revisions created here that the server lacks."""
        known, moved = bundle.revs, {rev.rev for rev, _ in more}
        before = unsent_edits(self._connection, self._state, bundle.id, moved) if waiting else []
        edits = [one for one in (*before, *more) if one[0].rev not in known]
        created = [revision_of(self._connection, one) for one in waiting if one.kind == "create"]
        settled = {rev for one in waiting if one.kind == "resolve" for rev in one.detail.revs}
        unknown = [rev for rev in created if rev.rev not in known]
        local = msgspec.structs.replace(
            bundle,
            trunk=with_pending_edits(bundle.trunk, edits),
            branches=(
                *bundle.branches,
                *(msgspec.structs.replace(rev, number=0) for rev in unknown),
            ),
            waiting=tuple(rev for rev in bundle.waiting if rev not in settled),
        )
        return local, {rev.rev for rev in unknown}

    def _put_replica(self, key: int, bundle: Bundle) -> None:
        values = {"id": bundle.id, "memory": key, "epoch": bundle.epoch, "seq": bundle.seq}
        values |= {"head": bundle.head.rev, "revision": bundle.head.number}
        values |= {
            "access": bundle.access,
            "digest": digest_of_known(bundle, bundle.head.number),
        }
        self._connection.execute(self._sql["put"], values)

    def _with_redactions(
        self, bundle: Bundle, waiting: Sequence[Pending], redacted: Mapping[str, Rev]
    ) -> Bundle:
        """Keep a waiting redaction in force over what the server sends."""
        row = self._row(bundle.id)
        revs = {rev for one in waiting if one.kind == "scrub" for rev in one.detail.revs}
        revs |= redacted.keys()
        if not revs or row is None:
            return bundle
        held = read_bundles(self._connection, [int(row["key"])])[int(row["key"])].revs
        clean = {rev: held[rev].fields for rev in revs & held.keys()}
        return core.scrub(bundle, Op(op="", kind="scrub", id=bundle.id, scrubbed=clean))[1]

    def _differing(self, bundle: Bundle) -> dict[str, Rev]:
        """Return local revisions that the server sends with other fields after a redaction."""
        row, replica = self._row(bundle.id), self._replica(bundle.id)
        if row is None or (
            replica and digest_of_known(bundle, replica["revision"]) == replica["digest"]
        ):
            return {}
        sent, key = bundle.revs, int(row["key"])
        return {
            rev.rev: rev
            for rev in read_bundles(self._connection, [key])[key].revs.values()
            if rev.rev in sent
            and rev.fields != sent[rev.rev].fields
            and (replica is None or rev.number <= replica["revision"])
        }

    def _redacted_here(self, bundle: Bundle, differing: Mapping[str, Rev]) -> dict[str, Rev]:
        """Return those redacted on this laptop, which has the secrets' values."""
        if not differing or bundle.owner != self._user or not self._is_ours(bundle.id):
            return {}
        keys, sealed = self._engine.guard.keys, self._engine.store.secrets.of(bundle.id)
        values = {(one.kind, one.number): unseal(keys, bundle.id, one) for one in sealed}
        sent = bundle.revs
        return {
            id: rev
            for id, rev in differing.items()
            if core.is_redacted(rev.fields, sent[id].fields, values)
        }

    def _redact_beside(self, id: str) -> None:
        memory = self._engine.store.all_memories.get(id)
        if self._engine.store.branches.beside(memory) and redact_one(self._engine, memory):
            key = self._key(id)
            assert key is not None, "just read"
            prepare_memories(self._connection, [key], self._user, self._state.place.sensitive)

    def _park_unsent(self, local: Bundle, here: str | None = None) -> None:
        """Park text that writing `local` would lose: not known to the server, and not waiting.

        `here` is the memory's present id if it differs.
        """
        id = here or local.id
        row, replica = self._row(id), self._replica(id)
        if (
            row is None
            or row["owner"] != LOCAL
            or (replica is not None and row["revision"] <= replica["revision"])
        ):
            return
        known, server_revision = local.revs, replica["revision"] if replica is not None else 0
        bundle = read_bundles(self._connection, [int(row["key"])])[int(row["key"])]
        for last, rev in pairwise((None, *bundle.trunk)):
            assert rev is not None, "only the first has none before it"
            sensitive = bool(rev.fields.get("sensitive"))
            if rev.number <= server_revision and not sensitive:
                continue
            if rev.rev in known and (not sensitive or known[rev.rev].fields == rev.fields):
                continue
            self._park_lost(
                local, last, rev, WRITTEN_WHILE_SENSITIVE if sensitive else UNKNOWN_ON_SERVER
            )
        if replica is None:  # it followed another server, or this one before a restore
            for rev in bundle.branches:
                if rev.rev not in known:
                    self._park_lost(local, bundle.revs.get(rev.base or ""), rev, UNKNOWN_BRANCH)

    def _park_lost(self, local: Bundle, last: Rev | None, rev: Rev, reason: str) -> None:
        patch = changes_between(last.fields if last else {}, rev.fields)
        lost = {
            name: value for name, value in patch.items() if local.head.fields.get(name) != value
        }
        if lost.keys() - {"sensitive"}:
            self._park_op(
                Op(op=rev.rev, kind="edit", id=local.id, rev=rev.rev, fields=lost), reason
            )

    def _park_op(self, op: Op, reason: str) -> None:
        values = {
            "op": op.op,
            "kind": op.kind,
            "id": op.id,
            "rev": op.rev,
            "reason": reason,
            "at": now(),
        }
        self._connection.execute(
            self._sql["park"], {**values, "body": msgspec.json.encode(op).decode()}
        )

    def _set_feedback(self, key: int, bundle: Bundle) -> None:
        for one in bundle.feedback:
            values = {
                "memory": key,
                "query": one.query,
                "verdict": one.verdict,
                "at": one.at or now(),
            }
            self._connection.execute(self._sql["put_told"], values)
        prepare_feedback(self._connection, [key], self._state.place.sensitive)

    def _set_shares(
        self,
        key: int,
        id: str,
        sent: Sequence[ShareRecord],
        waiting: Sequence[Pending],
        access: Access = "own",
    ) -> None:
        ended = self._ended_shares(id, sent, waiting)
        self._connection.execute(self._sql["delete_shares"], {"id": id})
        for grantee, permission in [
            *ended,
            *((one.grantee, one.permission) for one in sent),
        ]:
            values = {"id": id, "tag": "", "grantee": grantee, "permission": permission}
            self._connection.execute(self._sql["put_share"], values)
        known: Shares = {("", one.grantee): one.permission for one in sent}
        wanted = {
            grantee: permission
            for (_, grantee), permission in with_pending_shares(known, waiting).items()
        }
        if access != "own":
            wanted = {} if self._state.hidden else {LOCAL: access}
        self._share_with(key, wanted)

    def _ended_shares(
        self, id: str, sent: Sequence[ShareRecord], waiting: Sequence[Pending]
    ) -> list[tuple[str, str]]:
        """Return shares that ended, unless a heal will restore them."""
        known = self._connection.execute(self._sql["ended_shares"], {"id": id}).fetchall()
        if not any(one.kind == "heal" for one in waiting):
            known += self._connection.execute(self._sql["shares"], {"id": id}).fetchall()
        grantees = {one.grantee for one in sent}
        return [(row["grantee"], "ended") for row in known if row["grantee"] not in grantees]

    def _share_with(self, key: int, wanted: Mapping[str, Permission]) -> None:
        sql = self._connection.sql("shares")
        rows = self._connection.execute(
            self._connection.sql("sync")["shares_of"], {"keys": f"[{key}]"}
        ).fetchall()
        held = {row["grantee"]: row["permission"] for row in rows}
        for grantee in held.keys() - wanted.keys():
            self._connection.execute(sql["unshare_memory"], {"key": key, "user": grantee})
        for grantee, permission in wanted.items():
            if held.get(grantee) != permission:
                named = {"user": grantee, "permission": permission, "created_at": now()}
                self._connection.execute(sql["share_memory"], {"key": key, **named})
        if held != wanted:
            self._connection.note_change(key)

    def _set_tag_shares(self, tags: Sequence[ShareRecord]) -> None:
        sent: Shares = {(one.tag, one.grantee): one.permission for one in tags}
        wanted = with_pending_shares(sent, self._pending(""))
        known = self._connection.execute(self._sql["shares"], {"id": ""}).fetchall()
        known += self._connection.execute(self._sql["ended_shares"], {"id": ""}).fetchall()
        ended = {(row["tag"], row["grantee"]) for row in known} - sent.keys()
        rows = self._connection.execute(self._sql["own_tag_shares"]).fetchall()
        for tag, grantee in {(row["tag"], row["grantee"]) for row in rows} - wanted.keys():
            self._connection.execute(
                self._sql["delete_tag_share"], {"tag": tag, "grantee": grantee}
            )
        self._connection.execute(self._sql["delete_shares"], {"id": ""})
        for (tag, grantee), permission in sent.items():
            values = {"id": "", "tag": tag, "grantee": grantee, "permission": permission}
            self._connection.execute(self._sql["put_share"], values)
        for tag, grantee in sorted(ended):
            values = {"id": "", "tag": tag, "grantee": grantee, "permission": "ended"}
            self._connection.execute(self._sql["put_share"], values)
        for (tag, grantee), permission in wanted.items():
            values = {"tag": tag, "grantee": grantee, "permission": permission, "at": now()}
            self._connection.execute(self._sql["put_tag_share"], values)

    def _set_links(
        self, key: int, id: str, links: Sequence[LinkRecord], waiting: Sequence[Pending]
    ) -> None:
        sent = {one.ends: one for one in links}
        held = {one.ends: one for one in read_bundles(self._connection, [key])[key].links}
        ids = {id} | {end for ends in (*sent, *held) for end in (ends[0], ends[2])}
        queued = [
            one for end in sorted(ids) for one in (waiting if end == id else self._pending(end))
        ]
        wanted = {
            ends for ends in with_pending_links(sent.keys(), queued) if id in (ends[0], ends[2])
        }
        self._connection.execute(self._sql["delete_links"], {"id": id})
        for ends in sent:
            if self._is_here(ends):
                values = dict(zip(("source", "kind", "target"), ends, strict=True))
                self._connection.execute(self._sql["put_link"], values)
        for ends in held.keys() - wanted:
            if self._is_synced(ends[0]) and self._is_synced(ends[2]):
                self._unlink(ends)
        for ends in wanted - held.keys():
            if self._is_here(ends):
                self._link(ends, sent[ends].created_at if ends in sent else "")

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
                update_superseded_state(self._connection, key)
                self._connection.note_change(key)

    def _is_here(self, ends: Ends) -> bool:
        return self._key(ends[0]) is not None and self._key(ends[2]) is not None

    def _is_synced(self, id: str) -> bool:
        return self._replica(id) is not None

    def _replica(self, id: str) -> Any:
        return self._connection.execute(self._sql["by_id"], {"id": id}).fetchone()

    def _row(self, id: str) -> Any:
        return row_by_id(self._connection, id)

    def _key(self, id: str) -> int | None:
        return key_by_id(self._connection, id)

    def _is_ours(self, id: str) -> bool:
        row = self._row(id)
        return row is not None and row["owner"] == LOCAL

    def _pending(self, id: str) -> list[Pending]:
        return pending(self._connection, id)

    def _is_purged(self, id: str) -> bool:
        return (
            self._connection.execute(
                self._connection.sql("sync")["tombstone"], {"id": id}
            ).fetchone()
            is not None
        )
