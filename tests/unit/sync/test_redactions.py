"""A redaction reaches every word of a memory: what clashed, was refused or waits, on laptops and on the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.syncing.machines import LaptopMachine, Machine, caller
from soak.syncing.people import RAW, unguarded
from soak.syncing.world import World
from support.told_history import history, level
from trivet.memory.lifecycle import redact_one
from trivet.sync.laptop import join, leave
from trivet.types import Memory

# As the index keeps it too.
CANARY = RAW.rsplit("-", maxsplit=1)[-1].lower()


def holds(machine: Machine) -> bool:
    machine.reopen()
    machine.trivet.engine.store.upkeep.finish_erasing(of_any_size=True)
    return CANARY.encode() in machine.bytes().lower()


def clashed(world: World) -> str:
    """Two laptops wrote the secret into one memory while no guard was on; one of the texts lies beside."""
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
def test_a_secret_in_an_edit_that_clashed_is_taken_out_everywhere(
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
            assert not holds(machine), machine.name
        assert "a1 says [secret:slack-token:1]" in str(
            world.server.rows("SELECT snapshot FROM revision")
        )
        assert "a2 says [secret:slack-token:1]" in str(
            world.laptops[1].rows("SELECT snapshot FROM branch")
        )


@pytest.mark.parametrize("where", [0, 1])
def test_a_secret_that_waits_to_be_brought_back_is_taken_out(
    where: int, folder: Path, team: dict[str, Path]
) -> None:
    """On the laptop that redacts, and on another one that hears of it."""
    with history(folder, team) as world:
        world.server.back_up()
        id = clashed(world)
        world.put_server_back()
        first = world.laptops[where]
        heard_of_the_other_life(world, first)
        assert CANARY in str(first.rows("SELECT bundle FROM carried")).lower()
        redactor = world.laptops[0]
        redact_one(redactor.trivet.engine, redactor.trivet.engine.store.memories.get(id))
        world.come_to_rest()
        for machine in (world.server, *world.laptops):
            assert not holds(machine), machine.name


def heard_of_the_other_life(world: World, laptop: LaptopMachine) -> None:
    for _ in range(2):
        world.exchange(laptop, most=0)


def test_a_secret_in_what_was_refused_is_taken_out(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        id, first = clashed(world), world.laptops[0]
        leave(first.trivet.engine)
        assert CANARY in str(first.rows("SELECT body FROM parked")).lower()
        redact_one(first.trivet.engine, first.trivet.engine.store.memories.get(id))
        assert not holds(first)
        assert "says [secret:slack-token:1]" in str(first.rows("SELECT body FROM parked"))


def test_a_redaction_that_waits_is_not_undone_by_what_comes(
    folder: Path, team: dict[str, Path]
) -> None:
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
            told = str(machine.rows(f"SELECT snapshot FROM revision WHERE memory = {key}"))
            assert CANARY not in told.lower(), machine.name
            assert "a title" in told


def raw_on(laptop: LaptopMachine) -> Memory:
    return next(
        one for one in laptop.trivet.engine.store.memories.everything() if RAW in one.content
    )


def test_a_redaction_by_one_who_had_left_reaches_the_server(
    folder: Path, team: dict[str, Path]
) -> None:
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


def test_a_secret_that_a_backup_brings_back_is_taken_out_again(
    folder: Path, team: dict[str, Path]
) -> None:
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
def test_a_redaction_reaches_one_who_has_the_memory_as_sensitive(
    sensitive_on: int, folder: Path, team: dict[str, Path]
) -> None:
    """Its words travel no more; that a secret was taken out does. The laptop takes it out by itself."""
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
        assert not holds(first)
        said = str(first.rows("SELECT snapshot FROM revision"))
        assert "the token is [secret:slack-token:1]" in said
        assert ("a private matter" in said) == (sensitive_on == 0)


def test_a_secret_is_taken_out_of_what_a_laptop_keeps_outside_of_its_scopes(
    folder: Path, team: dict[str, Path]
) -> None:
    """It stays there, since an edit has a secret's value that nobody else has."""
    with history(folder, team) as world:
        world.leave_raw()
        redactor, other = world.laptops[:2]
        [raw] = [
            one for one in other.trivet.engine.store.memories.everything() if RAW in one.content
        ]
        other.trivet.edit(raw.id, title="a title")
        join(other.trivet.engine, "http://server", "ana", scopes=("work",))
        world.come_to_rest()
        assert holds(other)
        redact_one(redactor.trivet.engine, redactor.trivet.engine.store.memories.get(raw.id))
        world.come_to_rest()
        for machine in (redactor, other):
            assert not holds(machine), machine.name
        assert other.trivet.get(raw.id).title == "a title"


def test_a_redaction_reaches_one_who_joined_again_and_has_the_memory_as_sensitive(
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
        said = str(second.rows("SELECT snapshot FROM revision"))
        assert "the token is [secret:slack-token:1]" in said
        assert "a private matter" in said
        assert not holds(second)


@pytest.mark.parametrize("queued", [False, True])
def test_a_redaction_by_one_who_joins_again_and_has_the_memory_as_sensitive_reaches_the_server(
    queued: bool, folder: Path, team: dict[str, Path]
) -> None:
    """Also where the memory was in the outbox before: what is sent reads as it does when it is sent."""
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
        said = str(world.server.rows("SELECT snapshot FROM revision WHERE author = 'ana'")).lower()
        assert "[secret:slack-token:1]" in said
        assert CANARY not in said
