"""A redaction removes the secret from conflicts and from refused and pending edits everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.syncing.machines import LaptopMachine, Machine, caller
from soak.syncing.people import RAW, unguarded
from soak.syncing.world import World
from support.scripted_history import history, level
from trivet.memory.lifecycle import redact_one
from trivet.sync.laptop import join, leave
from trivet.types import Memory

# Lowercase, as the index stores it.
CANARY = RAW.rsplit("-", maxsplit=1)[-1].lower()


def contains_secret(machine: Machine) -> bool:
    machine.reopen()
    machine.trivet.engine.store.upkeep.finish_erasing(of_any_size=True)
    return CANARY.encode() in machine.bytes().lower()


def clashed(world: World) -> str:
    """Write the secret on two laptops with the guard off, so that one edit becomes a branch."""
    first, second = world.laptops[:2]
    guarded, world.server.trivet = world.server.trivet, unguarded(world.server.trivet)
    id = first.trivet.remember("plain was said.").id
    world.come_to_rest()
    for laptop in (first, second):
        unguarded(laptop.trivet).edit(id, content=f"{laptop.name} says {RAW}")
    world.come_to_rest()
    world.server.trivet = guarded
    assert world.server.rows("SELECT waiting FROM branch") == [(1,)]
    return id


@pytest.mark.parametrize("where", ["laptop", "server"])
def test_redaction_reaches_conflicting_edit(
    where: str, folder: Path, team: dict[str, Path]
) -> None:
    with history(folder, team) as world:
        id = clashed(world)
        trivet = (
            world.laptops[0].trivet
            if where == "laptop"
            else world.server.trivet.acting_as(caller("ana"))
        )
        redact_one(trivet.engine, trivet.engine.store.memories.get(id))
        world.come_to_rest()
        for machine in (world.server, *world.laptops):
            assert not contains_secret(machine), machine.name
        assert "a1 says [secret:slack-token:1]" in str(
            world.server.rows("SELECT snapshot FROM revision")
        )
        assert "a2 says [secret:slack-token:1]" in str(
            world.laptops[1].rows("SELECT snapshot FROM branch")
        )


@pytest.mark.parametrize("where", [0, 1])
def test_redaction_reaches_carried_edit(where: int, folder: Path, team: dict[str, Path]) -> None:
    """Checked on the redacting laptop and on another one that receives the redaction."""
    with history(folder, team) as world:
        world.server.back_up()
        id = clashed(world)
        world.put_server_back()
        first = world.laptops[where]
        learn_new_epoch(world, first)
        assert CANARY in str(first.rows("SELECT bundle FROM carried")).lower()
        redactor = world.laptops[0]
        redact_one(redactor.trivet.engine, redactor.trivet.engine.store.memories.get(id))
        world.come_to_rest()
        for machine in (world.server, *world.laptops):
            assert not contains_secret(machine), machine.name


def learn_new_epoch(world: World, laptop: LaptopMachine) -> None:
    for _ in range(2):
        world.exchange(laptop, most=0)


def test_redaction_reaches_refused_edit(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        id, first = clashed(world), world.laptops[0]
        leave(first.trivet.engine)
        assert CANARY in str(first.rows("SELECT body FROM parked")).lower()
        redact_one(first.trivet.engine, first.trivet.engine.store.memories.get(id))
        assert not contains_secret(first)
        assert "says [secret:slack-token:1]" in str(first.rows("SELECT body FROM parked"))


def test_pending_redaction_survives_pull(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        world.leave_raw()
        first = world.laptops[0]
        raw = next(
            one for one in first.trivet.engine.store.memories.everything() if RAW in one.content
        )
        world.server.trivet.acting_as(caller("ana")).edit(raw.id, title="a title")
        redact_one(first.trivet.engine, raw)
        level(world, first)
        world.come_to_rest()
        for machine in (world.server, first):
            key = machine.rows(f"SELECT key FROM memory WHERE id = '{raw.id}'")[0][0]
            snapshots = str(machine.rows(f"SELECT snapshot FROM revision WHERE memory = {key}"))
            assert CANARY not in snapshots.lower(), machine.name
            assert "a title" in snapshots


def raw_on(laptop: LaptopMachine) -> Memory:
    return next(
        one for one in laptop.trivet.engine.store.memories.everything() if RAW in one.content
    )


def test_redaction_made_while_away_reaches_server(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        world.leave_raw()
        first = world.laptops[0]
        leave(first.trivet.engine)
        redact_one(first.trivet.engine, raw_on(first))
        join(first.trivet.engine, "http://server", first.user)
        world.come_to_rest()
        for machine in (world.server, *world.laptops):
            assert (
                CANARY
                not in str(
                    machine.rows("SELECT snapshot FROM revision WHERE author = 'ana'")
                ).lower()
            )


def test_secret_from_restored_backup_is_redacted_again(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        world.leave_raw()
        world.server.back_up()
        first = world.laptops[0]
        redact_one(first.trivet.engine, raw_on(first))
        world.come_to_rest()
        world.put_server_back()
        world.come_to_rest()
        for machine in (world.server, *world.laptops):
            assert (
                CANARY
                not in str(
                    machine.rows("SELECT snapshot FROM revision WHERE author = 'ana'")
                ).lower()
            )


@pytest.mark.parametrize("sensitive_on", [0, 1])
def test_redaction_reaches_sensitive_memory(
    sensitive_on: int, folder: Path, team: dict[str, Path]
) -> None:
    """Sensitive text no longer travels, but the redaction does; the laptop applies it itself."""
    with history(folder, team) as world:
        world.leave_raw()
        first, second = world.laptops[:2]
        id = raw_on(first).id
        redact_one(second.trivet.engine, raw_on(second))
        world.laptops[sensitive_on].trivet.edit(id, content="a private matter", sensitive=True)
        world.come_to_rest()
        for machine in (world.server, *world.laptops):
            assert (
                CANARY
                not in str(
                    machine.rows("SELECT snapshot FROM revision WHERE author = 'ana'")
                ).lower()
            )
        assert not contains_secret(first)
        snapshots = str(first.rows("SELECT snapshot FROM revision"))
        assert "the token is [secret:slack-token:1]" in snapshots
        assert ("a private matter" in snapshots) == (sensitive_on == 0)


def test_redaction_reaches_memory_outside_scopes(folder: Path, team: dict[str, Path]) -> None:
    """The laptop keeps it because an edit holds a secret value that no one else has."""
    with history(folder, team) as world:
        world.leave_raw()
        redactor, other = world.laptops[:2]
        [raw] = [
            one for one in other.trivet.engine.store.memories.everything() if RAW in one.content
        ]
        other.trivet.edit(raw.id, title="a title")
        join(other.trivet.engine, "http://server", "ana", scopes=("work",))
        world.come_to_rest()
        assert contains_secret(other)
        redact_one(redactor.trivet.engine, redactor.trivet.engine.store.memories.get(raw.id))
        world.come_to_rest()
        for machine in (redactor, other):
            assert not contains_secret(machine), machine.name
        assert other.trivet.get(raw.id).title == "a title"


def test_redaction_reaches_sensitive_memory_after_rejoining(
    folder: Path, team: dict[str, Path]
) -> None:
    with history(folder, team) as world:
        world.leave_raw()
        first, second = world.laptops[:2]
        id = raw_on(first).id
        redact_one(first.trivet.engine, raw_on(first))
        level(world, first)
        leave(second.trivet.engine)
        join(second.trivet.engine, "http://server", "ana")
        second.trivet.edit(id, content="a private matter", sensitive=True)
        world.come_to_rest()
        snapshots = str(second.rows("SELECT snapshot FROM revision"))
        assert "the token is [secret:slack-token:1]" in snapshots
        assert "a private matter" in snapshots
        assert not contains_secret(second)


@pytest.mark.parametrize("queued", [False, True])
def test_redaction_of_sensitive_memory_reaches_server(
    queued: bool, folder: Path, team: dict[str, Path]
) -> None:
    """This also holds for a memory already in the outbox, which is read at send time."""
    with history(folder, team) as world:
        world.leave_raw()
        first = world.laptops[0]
        id = raw_on(first).id
        leave(first.trivet.engine)
        join(first.trivet.engine, "http://server", "ana")
        if queued:
            first.laptop.ask(0)
        redact_one(first.trivet.engine, raw_on(first))
        first.trivet.edit(id, content="a private matter", sensitive=True)
        world.come_to_rest()
        snapshots = str(
            world.server.rows("SELECT snapshot FROM revision WHERE author = 'ana'")
        ).lower()
        assert "[secret:slack-token:1]" in snapshots
        assert CANARY not in snapshots
