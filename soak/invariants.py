"""The invariants: checked for a round's subjects after it, and for all at a store's end."""

from __future__ import annotations

import re
import time
import urllib.parse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg

from acceptance.http.test_access_matrix import ON_A_MEMORY, WITHOUT_A_MEMORY, request
from soak.ledger import GONE, Fate, Said
from soak.world import World
from support.http_server import Client, served, settings_for
from support.postgres_server import PostgresServer
from trivet import Trivet
from trivet.common.ids import new_id
from trivet.types import Memory

# The disk is small on purpose.
EXPECTED = {"room on disk"}
# After a failing embedder, jobs wait and the embedder pauses; both must be over at the end.
MAY_WAIT = {"jobs", "embedder"}
# Ids a stranger asks for.
ASKED = 5
# Above the longest lease and the longest pause after a failure.
LONGEST_PAUSE_SECONDS = 3600.0
# Part of an invented word: the index drops the prefix a word shares with the one before.
PIECE = slice(4, 16)
# Parts of an answer that always differ: request ids, memory ids, times.
PASSING = re.compile(
    r'[0-9a-f]{8}-[0-9a-f-]{27}|"took_ms":[0-9.]+|"legs_ms":\{[^}]*\}|\d{4}-\d\d-\d\dT[0-9:.]+Z'
)


@dataclass
class Look:
    """A store without active writers, and the writes to check."""

    world: World
    memory: Trivet
    fates: Mapping[str, Fate]
    at_the_end: bool

    def found(self) -> dict[str, list[Memory]]:
        by_subject: dict[str, list[Memory]] = defaultdict(list)
        for one in self.memory.engine.store.memories.everything():
            by_subject[one.content.partition(" ")[0]].append(one)
        return by_subject


Check = Callable[[Look], Iterator[str]]


def told_the_truth(look: Look) -> Iterator[str]:
    yield from look.world.ledger.wrong


def doctor_is_clean(look: Look) -> Iterator[str]:
    passed_over = EXPECTED if look.at_the_end else EXPECTED | MAY_WAIT
    for finding in look.memory.doctor():
        if not finding.ok and finding.check not in passed_over:
            yield f"doctor: {finding.check}: {finding.detail}"


def rows_are_there(look: Look) -> Iterator[str]:
    """Each memory is as acknowledged, or as an open act would leave it, with its history."""
    found = look.found()
    for subject, fate in look.fates.items():
        memories = found.get(subject, [])
        if len(memories) > 1:
            yield f"{subject} is there {len(memories)} times"
            continue
        stands = _said(memories[0]) if memories else GONE
        if not fate.allows(stands):
            yield f"{subject} is {stands}, acknowledged was {fate.acknowledged}, possible {fate.possible}, {fate.error}"
        elif memories:
            yield from _history(look, subject, fate, memories[0])
    for subject in set(found) - set(look.world.ledger.fates):
        yield f"{subject} is there, and no writer meant to write it (or it was purged)"


def _history(look: Look, subject: str, fate: Fate, memory: Memory) -> Iterator[str]:
    revisions = look.memory.history(memory.id)
    if not fate.acts <= len(revisions) <= fate.acts + len(fate.possible):
        yield f"{subject} has {len(revisions)} revisions after {fate.acts} acknowledged acts"
    if revisions[-1].memory != memory:
        yield f"{subject} differs from its last revision"


def words_are_found(look: Look) -> Iterator[str]:
    found = look.found()
    for subject in look.fates:
        living = [one.id for one in found.get(subject, []) if one.state == "active"]
        hits = [hit.id for hit in look.memory.recall(subject, recipe="legs(lexical)").hits]
        if hits != living:
            yield f"the words of {subject} give {hits}, not {living}"


def vectors_are_made(look: Look) -> Iterator[str]:
    """After the queue is drained, each memory is its own text's nearest, and none waits."""
    if not look.memory.engine.embedding.enabled:
        return
    look.memory.engine.store.jobs.retry_now()  # What a killed worker had leased.
    look.memory.drain()
    if waiting := look.memory.stats().not_embedded:
        yield f"{waiting} memories have no vectors after draining"
    for subject, memories in look.found().items():
        if memories[0].state == "active":
            hits = look.memory.recall(memories[0].content, recipe="legs(dense)", limit=1).hits
            if [hit.id for hit in hits] != [memories[0].id]:
                yield f"{subject} is not nearest to its own text"


def nothing_is_put_off(look: Look) -> Iterator[str]:
    """No job is put off longer than minutes, even if leased by a wrong clock."""
    look.memory.drain()
    database = look.memory.engine.store.jobs._database
    with database.errors():
        rows = database.read_unrestricted().execute("SELECT not_before FROM job").fetchall()
    late = [row[0] - time.time() for row in rows if row[0] - time.time() > LONGEST_PAUSE_SECONDS]
    if late:
        yield f"{len(late)} jobs are put off for up to {max(late) / 3600:,.0f} hours"


def purged_is_gone(look: Look) -> Iterator[str]:
    """In no file of the store, or in no row of a database."""
    rest = b"".join(_bytes(look.world))
    for subject in look.world.ledger.purged:
        if subject[PIECE].encode() in rest:
            yield f"{subject} was purged, and its letters are still stored"


def stranger_is_blind(look: Look) -> Iterator[str]:
    """A stranger gets the same answer for a memory as for none."""
    memories = [one for found in look.found().values() for one in found]
    other = new_id()
    asked = look.world.random.sample(memories, min(ASKED, len(memories)))
    with served(settings_for(look.world.address)) as server:
        client = server.with_key(look.world.key("stranger"))
        for one in asked:
            for template in ON_A_MEMORY:
                seen, unseen = (_answer(client, template, id, other) for id in (one.id, new_id()))
                if seen != unseen:
                    yield f"a stranger can tell by {template}: {seen} if it is there, {unseen} if it is not"
        for template in WITHOUT_A_MEMORY:
            text = request(client, template, "", "").text
            yield from (
                f"{subject} in {template}" for subject in look.world.ledger.fates if subject in text
            )


AFTER_EACH_ROUND: Mapping[str, Check] = {
    "every error told the truth": told_the_truth,
    "every acknowledged write is there once, with its history": rows_are_there,
    "every memory is found by its words": words_are_found,
    "the doctor is clean": doctor_is_clean,
}
AT_THE_END: Mapping[str, Check] = {
    "no job is put off for long": nothing_is_put_off,
    "every memory gets its vector": vectors_are_made,
    **AFTER_EACH_ROUND,
    "nothing purged is in any file": purged_is_gone,
    "a stranger sees nothing": stranger_is_blind,
}


def check(world: World, at_the_end: bool) -> dict[str, list[str]]:
    """Return what each invariant found wrong, then settle open acts."""
    touched = world.ledger.touched()
    world.embedder.be("honest")
    with world.open() as memory:
        look = Look(world, memory, dict(world.ledger.fates) if at_the_end else touched, at_the_end)
        invariants = AT_THE_END if at_the_end else AFTER_EACH_ROUND
        wrong = {name: list(invariant(look)) for name, invariant in invariants.items()}
        found = look.found()
        for subject in touched:
            memories = found.get(subject, [])
            revisions = len(memory.history(memories[0].id)) if memories else 0
            world.ledger.settle(subject, _said(memories[0]) if memories else GONE, revisions)
    return wrong


def _said(memory: Memory) -> Said:
    return Said(memory.content if memory.state == "active" else "", memory.state)


def _bytes(world: World) -> Iterator[bytes]:
    """Return the files with only our connection open, when the log is short, or all rows."""
    if world.postgres is None:
        yield from (file.read_bytes() for file in Path(world.folder).rglob("*") if file.is_file())
        return
    yield _rows(world.postgres, world.address)


def _rows(server: PostgresServer, address: str) -> bytes:
    name = urllib.parse.urlsplit(address).path.lstrip("/")
    with psycopg.connect(server.url(name, "postgres")) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_stat_user_tables ORDER BY relname"
        ).fetchall()
        rows = [
            row
            for (table,) in tables
            for row in connection.execute(f"SELECT t::text FROM {table} AS t")
        ]
    return "\n".join(str(row[0]) for row in rows).encode()


def _answer(client: Client, template: str, id: str, other: str) -> tuple[int, str]:
    answer = request(client, template, id, other)
    return answer.status_code, PASSING.sub("", answer.text)
