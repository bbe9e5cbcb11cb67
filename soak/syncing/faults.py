"""Rules of sync, each switched off by name. The invariants must notice every one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from soak.syncing.world import World
from trivet.store.relational.tables.sync_feed import SyncFeed
from trivet.sync import aliases, core, laptop, replica, server
from trivet.sync import apply_ops as applying
from trivet.sync import laptop_state as outbox
from trivet.sync import outgoing as preparing
from trivet.sync import replica_changes as healing
from trivet.sync.messages import Acks, OtherEpoch, Page, Place

Patch = tuple[Any, str, Any]


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _dropped_by_chance(world: World) -> list[Patch]:
    kept = outbox.enqueue

    def sometimes(*arguments: Any, **named: Any) -> None:
        if world.random.random() > 0.05:
            kept(*arguments, **named)

    return [(preparing, "enqueue", sometimes)]


def _answer_before_commit(world: World) -> list[Patch]:
    def pushed(engine: Any, request: Any, dies: bool) -> Any:
        from soak.syncing.exchanges import ACTED, Crash

        try:
            with engine.store.feed.transaction():
                answer = server.push(engine, request.place, request.ops)
                if dies:
                    ACTED.clear()
                    raise Crash
        except Crash:
            # The fault itself: a rolled-back act is answered as done. Without its mark the laptop
            # cannot tell.
            if isinstance(answer, Acks):
                answer = msgspec.structs.replace(answer, place=request.place)
        return answer

    return [(world, "pushed", pushed)]


def _place_before_items(world: World) -> list[Patch]:
    page = laptop._AnswerApplier.page

    def lost(self: Any, answer: Page) -> Any:
        if world.random.random() < 0.1:
            answer = msgspec.structs.replace(answer, items=answer.items[:-1])
        return page(self, answer)

    return [(laptop._AnswerApplier, "page", lost)]


def _numbers_skip(world: World) -> list[Patch]:
    pull = server.pull

    def ahead(engine: Any, place: Place, limit: int) -> Any:
        answer = pull(engine, place, limit)
        if isinstance(answer, Page) and not answer.more and world.random.random() < 0.3:
            later = msgspec.structs.replace(answer.place, seq=answer.place.seq + 1)
            answer = msgspec.structs.replace(answer, place=later)
        return answer

    return [(server, "pull", ahead)]


def _unreadable_sent(world: World) -> list[Patch]:
    def items(engine: Any, connection: Any, state: Any, keys: Any) -> Any:
        from trivet.store.relational.tables.sync_bundles import read_bundles

        listed = {"keys": msgspec.json.encode(list(keys)).decode()}
        rows = connection.execute(connection.sql("sync")["known"], listed).fetchall()
        numbers = {row["memory"]: row["seq"] for row in rows}
        bundles = read_bundles(connection, keys, engine.viewer)
        return {
            key: msgspec.structs.replace(one, seq=numbers[key], epoch=state.epoch)
            for key, one in bundles.items()
        }

    return [(server, "_items", items)]


def _own_rows_deleted(world: World) -> list[Patch]:
    def finish(self: Any, epoch: str) -> None:
        heard = {"epoch": epoch, "outside": core.outside_epoch(epoch)}
        for row in self._connection.execute(self._sql["other_epoch"], heard).fetchall():
            self._remove(row["id"], "")

    return [
        (laptop._AnswerApplier, "_finish_full_pull", finish),
        (laptop._AnswerApplier, "_heal", _nothing),
    ]


def _gone_ignored(world: World) -> list[Patch]:
    from trivet.sync.messages import Gone

    take = laptop._AnswerApplier.take
    return [
        (
            laptop._AnswerApplier,
            "take",
            lambda self, item: None if isinstance(item, Gone) else take(self, item),
        )
    ]


def _links_unseen(world: World) -> list[Patch]:
    from trivet.store.relational.tables import sync_bundles as bundles
    from trivet.store.relational.tables import sync_feed as feed

    digest = bundles.bundle_digest
    return [
        (
            feed,
            "bundle_digest",
            lambda bundle, *more: digest(msgspec.structs.replace(bundle, links=()), *more),
        )
    ]


def _no_purge(held: Any, op: Any) -> str | None:
    return (
        None
        if op.kind in ("create", "heal", "purge") or held is not None
        else "There is no such memory."
    )


def _purge_half_done(world: World) -> list[Patch]:
    def deleted(self: Any, id: str) -> None:
        self._connection.execute("DELETE FROM memory WHERE id = :id", {"id": id})

    return [(laptop._AnswerApplier, "_delete", deleted)]


def _purges_unsent(world: World) -> list[Patch]:
    enqueue = outbox.enqueue

    def without(connection: Any, kind: Any, *more: Any, **named: Any) -> None:
        if kind != "purge":
            enqueue(connection, kind, *more, **named)

    return [(preparing, "enqueue", without)]


def _revocation_untold(world: World) -> list[Patch]:
    revoke = SyncFeed._revoke

    def untold(self: Any, connection: Any, id: str, grantees: Any, seq: int, purged: Any) -> int:
        return revoke(self, connection, id, grantees if purged else (), seq, purged)

    return [(SyncFeed, "_revoke", untold)]


def _nothing_was_lost(world: World) -> list[Patch]:
    standing = server._check_epoch

    def known(*arguments: Any) -> Any:
        answer = standing(*arguments)
        return (
            msgspec.structs.replace(answer, known=True)
            if isinstance(answer, OtherEpoch)
            else answer
        )

    return [(server, "_check_epoch", known)]


def _lost_numbers_count(world: World) -> list[Patch]:
    other_epoch = healing.ReplicaHealing.other_epoch

    def undoubted(self: Any, epoch: str) -> Any:
        numbers = self._connection.execute(self._sql["all"]).fetchall()
        state = other_epoch(self, epoch)
        for row in numbers:
            values = {"id": row["id"], "epoch": row["epoch"], "seq": row["seq"]}
            self._connection.execute(self._sql["set_place"], values)
        return state

    return [
        (healing.ReplicaHealing, "other_epoch", undoubted),
        (core, "outside_epoch", lambda epoch: epoch or ""),
    ]


def _let_go_at_once(self: Any, id: str, _: Any = ()) -> None:
    if self._key(id) is not None:
        self._delete(id)
        outbox.forget_memory(self._connection, id)


def _outside_is_deleted(self: Any, id: str, _: Any = ()) -> None:
    if self._replica(id) is not None and not self._pending(id):
        self._engine.store.all_memories.purge(id)


def _settled_unasked(held: Any, branches: Any, waiting: Any) -> Any:
    for rev in branches:
        held = held if rev.rev in held.revs else core.branched(held, rev, waits=False)
    return held


def _everything_counts(standing: Place, asked: Place, answer: Any) -> bool:
    return not isinstance(answer, OtherEpoch) or answer.epoch != standing.epoch


FAULTS: Mapping[str, Callable[[World], list[Patch]]] = {
    "a clash overwrites": lambda _: [(core, "clashes", lambda *_: False)],
    "the loser of a clash is dropped": lambda _: [(core, "branched", lambda held, rev, waits: held)],
    "a repeated operation acts again": lambda _: [(applying.OpApplier, "_earlier_outcome", _nothing)],
    "who lost a memory is not told": _revocation_untold,
    "a purge leaves no tombstone": lambda _: [
        (aliases.MemoryAliases, "is_purged", lambda *_: False),
        (aliases.MemoryAliases, "_belongs_to_another", lambda self, _, held: held is not None and held.owner != self._user),
        (laptop._AnswerApplier, "_is_purged", lambda *_: False),
    ],
    "an answer is told before it is committed": _answer_before_commit,
    "the place moves on before the items are written": _place_before_items,
    "an answer for another place counts": lambda _: [(core, "answer_counts", _everything_counts)],
    "an older bundle replaces a newer one": lambda _: [
        (core, "is_newer", lambda *_: True),
        (core, "answer_counts", _everything_counts),
    ],
    "what is refused is dropped": lambda _: [(laptop._AnswerApplier, "_park_op", _nothing)],
    "nobody heals a server that was put back": lambda _: [(laptop._AnswerApplier, "_heal", _nothing)],
    "marks are not compared": lambda _: [(SyncFeed, "knows", lambda *_: True)],
    "purges are not sent": _purges_unsent,
    "a full pull deletes what is one's own": _own_rows_deleted,
    "numbers run ahead of what is told": _numbers_skip,
    "what a user may not read is sent": _unreadable_sent,
    "sensitive memories are sent": lambda _: [(preparing, "_stays_local", lambda *_: False)],
    "a write and its operation are apart": _dropped_by_chance,
    "edits that wait are not put on top": lambda _: [
        (module, "with_pending_edits", lambda trunk, pending: tuple(trunk)) for module in (replica, healing)
    ],
    "what was taken from a user stays": _gone_ignored,
    "a link does not count as a change": _links_unseen,
    "two users' memories of one id are one": lambda _: [
        (module, "reassigned_id", lambda id, user: id) for module in (aliases, laptop)
    ],
    "what older epochs told is not carried": lambda _: [(core, "merge_carried", lambda old, new, waits: new)],
    "a clash that is brought back is settled": lambda _: [(core, "_with_branches", _settled_unasked)],
    "a purge leaves bytes behind": _purge_half_done,
    "a server that was put back claims to know every mark": _nothing_was_lost,
    "numbers of a server that was lost still count": _lost_numbers_count,
    "what is outside of a laptop's scopes is let go unsent": lambda _: [(laptop._AnswerApplier, "_drop_out_of_scope", _let_go_at_once)],
    "what is outside of a laptop's scopes is deleted": lambda _: [(laptop._AnswerApplier, "_drop_out_of_scope", _outside_is_deleted)],
    "feedback is not sent": lambda _: [
        (module, "prepare_feedback", _nothing) for module in (preparing, replica, healing)
    ],
    "redactions are not sent": lambda _: [(preparing, "_prepare_scrub", _nothing)],
    "words written while sensitive are dropped": lambda _: [(replica.Replica, "_park_unsent", _nothing)],
    "a sensitive memory is overwritten by what is told": lambda _: [(outbox, "withheld_edits", lambda *_: [])],
    "who shares a sensitive memory is not told": lambda _: [(laptop._AnswerApplier, "_set_shares_and_links", _nothing)],
    "a full pull needs notices from before it": lambda _: [
        (core, "missed_notices", lambda place, horizon: 0 < place.seq < horizon)
    ],
    "who leaves drops what lies beside": lambda _: [(laptop._Leaving, "keep_branches", _nothing)],
    "rights are not checked on the server": lambda _: [(core, "refusal", lambda held, op, *_: _no_purge(held, op))],
}  # fmt: skip


@contextmanager
def planted(name: str, world: World) -> Iterator[None]:
    with ExitStack() as stack:
        for target, attribute, instead in FAULTS[name](world):
            stack.enter_context(patch.object(target, attribute, instead))
        yield
