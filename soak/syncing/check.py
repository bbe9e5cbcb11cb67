"""What must hold in every history."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from trivet.common.ids import reassigned_id
from trivet.store.records import Bundle, changes_between, fields_of
from trivet.sync.core import edits_of, has_same_content, in_scopes, value_mark
from trivet.sync.exchange import check_item
from trivet.sync.messages import Acks, Answer, Op, Page

if TYPE_CHECKING:
    from soak.syncing.machines import LaptopMachine, Machine
    from soak.syncing.team import Team

READABLE = """
SELECT m.key, m.id, m.scope FROM memory AS m WHERE m.owner = '{user}' OR (NOT m.sensitive AND m.state != 'deleted' AND (
  m.key IN (SELECT memory FROM share WHERE grantee = '{user}')
  OR m.key IN (SELECT t.memory FROM memory_tag AS t JOIN tag_share AS s ON s.tag = t.tag
               JOIN memory AS o ON o.key = t.memory AND o.owner = s.owner WHERE s.grantee = '{user}')))
"""
NEVER_SENT = ("sensitivecanary", "ghp_")
REDACTED = re.compile(r"\[secret:slack-token:\d+\]")


def check_message(world: Team, user: str, message: Sequence[Op] | Answer) -> None:
    """Check that a user gets nothing they may not read, and nobody gets secrets."""
    text = msgspec.json.encode(message).decode()
    for canary in NEVER_SENT:
        assert canary not in text, f"{canary} travels"
    if isinstance(message, Acks | Page):
        items = [ack.item for ack in message.acks] if isinstance(message, Acks) else message.items
        readable = {row[1] for row in world.server.rows(READABLE.format(user=user))}
        for item in items:
            check_item(item)
            if isinstance(item, Bundle):
                assert item.id in readable, f"{user} is sent {item.id}, which is not theirs to read"


def check_taken(laptop: LaptopMachine, answer: Answer) -> None:
    """Check that a counting answer tells current states, none from later."""
    if isinstance(answer, Acks | Page):
        items = [ack.item for ack in answer.acks] if isinstance(answer, Acks) else answer.items
        told = {(item.id, item.epoch): item.seq for item in items if isinstance(item, Bundle)}
        for id, epoch, seq in laptop.rows("SELECT id, epoch, seq FROM replica") if told else ():
            assert seq <= told.get((id, epoch), seq), (
                f"{laptop.name} does not accept what the server said about {id}"
            )


WRITABLE = """
SELECT m.id FROM memory AS m WHERE m.owner = '{user}' OR (NOT m.sensitive AND m.state != 'deleted' AND (
  m.key IN (SELECT memory FROM share WHERE grantee = '{user}' AND permission = 'write')
  OR m.key IN (SELECT t.memory FROM memory_tag AS t JOIN tag_share AS s ON s.tag = t.tag
               JOIN memory AS o ON o.key = t.memory AND o.owner = s.owner
               WHERE s.grantee = '{user}' AND s.permission = 'write')))
"""


def writable_ids(server: Machine, user: str) -> set[str]:
    return {row[0] for row in server.rows(WRITABLE.format(user=user))}


def check_rights(
    world: Team, request: Any, answer: Acks, writable: set[str], acted: set[str]
) -> None:
    """Check that users change only what they may; `writable` is what they could write before."""
    made = {op.id for op in request.ops if op.kind in ("create", "heal")}
    for op, ack in zip(request.ops, answer.acks, strict=True):
        changed = ack.result in ("applied", "merged", "branched") and op.op in acted
        if changed and op.kind in ("edit", "share", "unshare") and op.id not in made:
            assert {op.id, ack.id} & writable, (
                f"{request.laptop.user} changed {op.id} without the right to"
            )


def check_at_rest(world: Team) -> None:
    for laptop in world.laptops:
        check_same(world, laptop)
    check_history(world)
    check_nothing_lost(world)
    check_hidden(world)
    check_purged(world)
    check_redacted(world)
    for (op, life), times in world.acted.items():
        assert times <= 1, f"operation {op} acted {times} times in life {life}"
    if world.random.random() < world.looks_closely:
        check_recall_and_doctor(world)


def state_of(
    machine: Machine, keys: dict[int, str], local: str | None, user: str
) -> dict[str, Any]:
    """Map each memory to what must be equal on laptop and server; feedback is that of `user`."""
    revisions: dict[str, Any] = {id: ([], [], set(), set(), set()) for id in keys.values()}
    for key, rev, snapshot in machine.rows(
        "SELECT memory, rev, snapshot FROM revision ORDER BY memory, revision"
    ):
        if key in keys:
            revisions[keys[key]][0].append((rev, fields_of(json.loads(snapshot))))
    for key, rev, waiting, snapshot in machine.rows(
        "SELECT memory, rev, waiting, snapshot FROM branch ORDER BY 1, 2"
    ):
        if key in keys:
            revisions[keys[key]][1].append((rev, waiting, fields_of(json.loads(snapshot))))
    for source, kind, target in machine.rows("SELECT source, kind, target FROM link"):
        if source in keys and target in keys:
            revisions[keys[source]][2].add((kind, keys[target]))
    for key, grantee, permission in machine.rows("SELECT memory, grantee, permission FROM share"):
        if key in keys and grantee != "local":
            revisions[keys[key]][3].add((grantee, permission))
    for key, actor, query, verdict in machine.rows(
        "SELECT memory, actor, query, verdict FROM feedback"
    ):
        if key in keys and actor == user:
            revisions[keys[key]][4].add((query, verdict))
    owners = dict(machine.rows("SELECT id, owner FROM memory"))
    states = dict(machine.rows("SELECT id, state FROM memory"))
    return {
        id: {
            "owner": local if owners[id] == "local" else owners[id],
            "state": states[id],
            "history": history,
            "branches": branches,
            "links": links,
            "shares": shares,
            "feedback": feedback,
        }
        for id, (history, branches, links, shares, feedback) in revisions.items()
    }


def check_same(world: Team, laptop: LaptopMachine) -> None:
    """Check that a laptop at rest holds exactly what its user may read."""
    hidden = {row[0] for row in world.server.rows("SELECT id FROM memory WHERE sensitive")}
    local = {row[0] for row in laptop.rows("SELECT id FROM memory WHERE sensitive")}
    readable = world.server.rows(READABLE.format(user=laptop.user))
    served = {
        key: id
        for key, id, scope in readable
        if id not in hidden | local and in_scopes(scope, laptop.scopes)
    }
    sealed = {
        row[0] for row in laptop.rows("SELECT memory FROM secret")
    }  # Their values exist only there, and stay.
    held = {
        key: id
        for key, id in laptop.rows("SELECT key, id FROM memory")
        if id not in hidden | local
        and (key not in sealed or not laptop.scopes or id in served.values())
    }
    here, there = set(held.values()), set(served.values())
    assert here == there, f"{laptop.name} has {here - there} too many and lacks {there - here}"
    ours = state_of(laptop, held, laptop.user, "local")
    theirs = state_of(world.server, served, None, laptop.user)
    for id, one in theirs.items():
        if one["owner"] != laptop.user:
            one["shares"] = set()
        for part, value in one.items():
            if part == "state" and value in ("active", "superseded"):
                continue  # The successor may be sensitive or unreadable to the user.
            assert ours[id][part] == value, (
                f"{laptop.name} differs from the server in the {part} of {id}: {ours[id][part]} / "
                f"{value}"
            )
    check_around_hidden(world, laptop, hidden)
    waiting = laptop.rows("SELECT count(*) FROM outbox")[0][0]
    assert waiting == 0, f"{waiting} operations of {laptop.name} wait for ever"


def check_around_hidden(world: Team, laptop: LaptopMachine, hidden: Set[str]) -> None:
    """Sensitive memories differ in words only; sharing and links must be equal."""
    readable = world.server.rows(READABLE.format(user=laptop.user))
    held = dict(laptop.rows("SELECT key, id FROM memory"))
    served = {
        key: id
        for key, id, scope in readable
        if id in held.values() and in_scopes(scope, laptop.scopes)
    }
    ours, theirs = (
        state_of(laptop, held, laptop.user, "local"),
        state_of(world.server, served, None, laptop.user),
    )
    for id in theirs.keys() & hidden:
        here, there = ours[id]["shares"], theirs[id]["shares"]
        assert here == there, (
            f"{laptop.name} and the server share {id} with others: {here} / {there}"
        )
        here, there = ours[id]["links"], theirs[id]["links"]
        assert here >= there, f"{laptop.name} lacks a link of {id}: {here} / {there}"


def check_history(world: Team) -> None:
    """Check that each revision has one place and none silently overwrites another's change."""
    server = world.server
    revs = [
        row[0]
        for row in server.rows(
            "SELECT rev FROM revision WHERE rev IS NOT NULL UNION ALL SELECT rev FROM branch"
        )
    ]
    assert len(revs) == len(set(revs)), "a revision twice"
    trunks: dict[int, list[Any]] = {}
    known: dict[str, dict[str, Any]] = {}
    for key, rev, base, snapshot in server.rows(
        "SELECT memory, rev, base, snapshot FROM revision ORDER BY memory, revision"
    ):
        known[rev] = fields_of(json.loads(snapshot))
        trunks.setdefault(key, []).append((rev, base))
    beside: dict[int, list[tuple[str, bool]]] = {}
    for key, rev, waiting, snapshot in server.rows(
        "SELECT memory, rev, waiting, snapshot FROM branch"
    ):
        known[rev] = fields_of(json.loads(snapshot))
        beside.setdefault(key, []).append((rev, bool(waiting)))
    for key, branches in beside.items():
        # An edit that repeats the current content has no clash, but may be one in another life of
        # the server.
        told = [rev for rev, waiting in branches if waiting or rev in world.settled] + [
            rev for rev, _ in trunks[key]
        ]
        for rev, waiting in branches:
            same = any(has_same_content(known[one], known[rev]) for one in told)
            assert waiting or same, f"{rev} clashed, and no one resolved it"
    for trunk in trunks.values():
        later = {rev for rev, _ in trunk}
        for (before, _), (rev, base) in pairwise(trunk):
            later.discard(before)
            if rev in world.edits:
                check_seen(rev, known[before], known[rev], *world.edits[rev])
            elif (
                base not in (None, before)
                and base in known
                and base not in later
                and not world.life
            ):
                for name, value in known[rev].items():
                    mine, theirs = known[base].get(name), known[before].get(name)
                    assert theirs in (mine, value), f"{rev} overwrote {name} silently"


def check_seen(
    rev: str,
    before: dict[str, Any],
    after: dict[str, Any],
    fields: Mapping[str, Any],
    was: Mapping[str, str],
) -> None:
    """Check that an edit saw what it changed.

    An edit equal to the current content changed nothing. Repeated on a server that was put back, it
    states that content again, and the first author keeps its words.
    """
    for name in fields.keys() & was.keys():
        theirs = before.get(name)
        seen = {value_mark(theirs), value_mark(with_its_secret(theirs))}
        assert theirs == after.get(name) or was[name] in seen, f"{rev} overwrote {name} silently"


def with_its_secret(value: Any) -> Any:
    """Return the value before its owner redacted it, which rewrites old revisions in place."""
    from soak.syncing.people import RAW

    return REDACTED.sub(RAW, value) if isinstance(value, str) else value


def words_on_server(world: Team) -> str:
    rows = world.server.rows("SELECT snapshot FROM revision UNION ALL SELECT snapshot FROM branch")
    return "\n".join(row[0] for row in rows)


def check_nothing_lost(world: Team) -> None:
    """Check that every word is on the server, parked where it was written, or purged.

    Words still waiting when the memory became sensitive stay in its history on the laptop.
    """
    served = words_on_server(world)
    stays = (
        "SELECT body FROM parked UNION ALL SELECT r.snapshot FROM revision AS r JOIN memory AS m "
        "ON m.key = r.memory"
        " WHERE m.sensitive AND m.owner = 'local'"
    )
    parked = "\n".join(row[0] for laptop in world.laptops for row in laptop.rows(stays))
    buried = buried_ids(world) | world.purged
    for word, (user, id) in world.words.items():
        if word in served or word in parked or word in world.forgivable:
            continue
        assert is_buried(id, user, buried), f"{word} of {user} in {id} is lost"


def words_on(laptop: LaptopMachine) -> str:
    sql = "SELECT snapshot FROM revision UNION ALL SELECT snapshot FROM branch UNION ALL SELECT body FROM parked"
    return "\n".join(row[0] for row in laptop.rows(sql))


def check_hidden(world: Team) -> None:
    """Check that words of a sensitive memory stay on the laptop that wrote them.

    The title or tags of one no longer sensitive reach the server, and the laptop may drop them.
    """
    buried, served = buried_ids(world) | world.purged, words_on_server(world)
    held = {laptop.name: words_on(laptop) for laptop in world.laptops}
    users = {laptop.name: laptop.user for laptop in world.laptops}
    for word, (name, id) in world.hidden.items():
        kept = word in held[name] or word in served
        assert kept or is_buried(id, users[name], buried), (
            f"{word}, sensitive in {id}, is lost on {name}"
        )


def is_buried(id: str, user: str, buried: Set[str]) -> bool:
    """Return whether a memory was purged under either of its ids."""
    return (
        id in buried
        or reassigned_id(id, user) in buried
        or any(reassigned_id(one, user) == id for one in buried)
    )


def buried_ids(world: Team) -> set[str]:
    return {
        row[0]
        for machine in (world.server, *world.laptops)
        for row in machine.rows("SELECT id FROM tombstone")
    }


def check_purged(world: Team) -> None:
    """Check that purged words are in no row or file, except the author's own refused edits."""
    buried = {row[0] for row in world.server.rows("SELECT id FROM tombstone")}
    for machine in (world.server, *world.laptops):
        left = {row[0] for row in machine.rows("SELECT id FROM memory")} & buried
        assert not left, f"{left} came back on {machine.name}"
    check_purged_by_any_name(world)
    gone = {word for word, (_, id) in world.words.items() if id in buried}
    gone |= {word for word, id in world.asked.items() if id in buried and word != "the same"}
    if not gone:
        return
    told = words_on_server(world) + "".join(
        row[0] for laptop in world.laptops for row in laptop.rows("SELECT body FROM parked")
    )
    # Feedback on a living memory is kept with it; of two made by one id, one may have another
    # since.
    told += " ".join(
        row[0]
        for machine in (world.server, *world.laptops)
        for row in machine.rows(
            "SELECT f.query FROM feedback AS f JOIN memory AS m ON m.key = f.memory"
        )
    )
    told += " ".join(sensitive_words(world))
    for machine in (world.server, *world.laptops):
        machine.reopen()  # Readers that ended no longer hold the log.
        machine.trivet.engine.store.upkeep.finish_erasing(of_any_size=True)
        held = machine.bytes()
        for word in gone:
            if word not in told:
                assert word.encode() not in held, (
                    f"{word} was purged and is in the files of {machine.name}"
                )


def sensitive_words(world: Team) -> Iterator[str]:
    """Return the words of sensitive memories that their owner has and did not purge.

    The id a memory was made by may be another user's, who purged theirs.
    """
    purged = purged_by_owner(world)
    for laptop in world.laptops:
        own = laptop.rows(
            "SELECT m.key, r.rev FROM revision AS r JOIN memory AS m ON m.key = r.memory"
            " WHERE r.revision = 1 AND m.sensitive AND m.owner = 'local'"
        )
        for key in (key for key, rev in own if (laptop.user, rev) not in purged):
            yield from (
                row[0] for row in laptop.rows(f"SELECT snapshot FROM revision WHERE memory = {key}")
            )


def purged_by_owner(world: Team) -> set[tuple[str, str]]:
    purged = set(world.server.rows("SELECT owner, first_rev FROM tombstone"))
    for laptop in world.laptops:
        rows = laptop.rows("SELECT first_rev FROM tombstone WHERE owner = 'local'")
        purged |= {(laptop.user, row[0]) for row in rows}
    return purged


def check_purged_by_any_name(world: Team) -> None:
    """A memory may have two ids; a purge on one machine must remove both from the server."""
    purged = purged_by_owner(world)
    sql = "SELECT m.owner, r.rev FROM revision AS r JOIN memory AS m ON m.key = r.memory WHERE r.revision = 1"
    back = purged & set(world.server.rows(sql))
    assert not back, f"{back} came back under another name"


def check_redacted(world: Team) -> None:
    """Check redacted secrets are in no machine's rows; a restored backup may bring them back."""
    if world.life or any(world.counts[name] for name in ("laptop put back", "laptop cloned")):
        return
    for machine in (world.server, *world.laptops):
        for id, snapshot in machine.rows(
            "SELECT m.id, r.snapshot FROM revision AS r JOIN memory AS m ON m.key = r.memory"
        ):
            assert id not in world.redacted or "xoxb-" not in snapshot, (
                f"{id} was redacted, and not on {machine.name}"
            )


def known_words(world: Team) -> set[str]:
    """Return the words some machine can still bring: server's, owners', authors', waiting."""
    found = [
        words_on_server(world),
        *(text for laptop in world.laptops for text in _brought_by(laptop)),
    ]
    text = "\n".join(found)
    return {word for word in world.words if word in text}


def _brought_by(laptop: LaptopMachine) -> Iterator[str]:
    """An author cannot bring another's words that an edit merely kept."""
    mine = f"(m.owner = 'local' OR r.author IN ('{laptop.user}', 'local') OR r.rev IS NULL)"
    joined = "AS r JOIN memory AS m ON m.key = r.memory"
    before: dict[int, dict[str, Any]] = {}
    for key, own, is_mine, snapshot in laptop.rows(
        f"SELECT r.memory, m.owner = 'local', {mine}, r.snapshot FROM revision {joined} ORDER BY "
        "r.memory, r.revision"
    ):
        said = fields_of(json.loads(snapshot))
        if is_mine:
            yield json.dumps(said if own else changes_between(before.get(key, {}), said))
        before[key] = said
    yield from (
        row[0] for row in laptop.rows(f"SELECT r.snapshot FROM branch {joined} WHERE {mine}")
    )
    yield from (row[0] for row in laptop.rows("SELECT body FROM parked"))
    for (carried,) in laptop.rows("SELECT bundle FROM carried"):
        bundle = msgspec.json.decode(carried, type=Bundle)
        whole = bundle.owner == laptop.user
        yield json.dumps(
            [rev.fields for rev in bundle.revs.values()]
            if whole
            else [said for _, said in edits_of(bundle, laptop.user)]
        )


def check_recall_and_doctor(world: Team) -> None:
    from soak.syncing.machines import caller

    served = world.server.trivet
    for machine in (world.server, *world.laptops):
        machine.trivet.drain()
    for laptop in world.laptops:
        if laptop.scopes:
            continue  # It holds less, so other words are rare.
        if any(
            machine.rows("SELECT 1 FROM memory WHERE sensitive")
            for machine in (world.server, laptop)
        ):
            continue  # A memory that never leaves its machine changes the scores there.
        for word in [*list(world.words)[:2], "said"]:
            theirs = served.acting_as(caller(laptop.user)).recall(word, limit=50, rerank="off").hits
            ours = laptop.trivet.recall(word, limit=50, rerank="off").hits
            assert [hit.id for hit in ours] == [hit.id for hit in theirs], (
                f"{laptop.name} recalls otherwise: {word}"
            )
    for machine in (world.server, *world.laptops):
        problems = [
            finding
            for finding in machine.trivet.doctor()
            if not finding.ok and finding.check not in UNRELATED
        ]
        assert not problems, f"doctor on {machine.name}: {problems}"


UNRELATED = ("sync", "room on disk", "keys of secrets", "embedder", "rights of the file")
