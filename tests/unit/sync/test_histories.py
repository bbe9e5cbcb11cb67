"""A few histories of laptops and a server over real stores, and faults that they must notice (soak/syncing)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from soak.syncing.check import check_at_rest, words_on_server
from soak.syncing.faults import FAULTS, planted
from soak.syncing.machines import LaptopMachine, seeded
from soak.syncing.world import LEVEL, RAW, SHARED_IDS, World, make_team
from trivet.sync.core import other_id
from trivet.sync.join import join

STEPS = 70
MOST_SEEDS = 60
# Each with a seed whose history shows it; `python -m soak.syncing --faults` finds them, and plants the others too.
PLANTED = {
    "a clash overwrites": 13,
    "the loser of a clash is dropped": 13,
    "a repeated operation acts again": 0,
    "an answer is told before it is committed": 32,
    "the place moves on before the items are written": 7,
    "what is refused is dropped": 24,
    "nobody heals a server that was put back": 2,
    "purges are not sent": 0,
    "a full pull deletes what is one's own": 2,
    "what a user may not read is sent": 0,
    "sensitive memories are sent": 29,
    "edits that wait are not put on top": 41,
    "what was taken from a user stays": 0,
    "a purge leaves bytes behind": 0,
    "what older epochs told is not carried": 7,
    "what is outside of a laptop's scopes is deleted": 4,
    "feedback is not sent": 0,
    "redactions are not sent": 20,
    "rights are not checked on the server": 24,
}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_team(tmp_path_factory.mktemp("team"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with TemporaryDirectory(dir=tmp_path) as made:
        yield Path(made)


@pytest.mark.parametrize("seed", [1, 13, 26])
def test_a_history_ends_with_everything_in_its_place(seed: int, folder: Path, team: dict[str, Path]) -> None:
    world = World(seed, folder, team, STEPS)
    world.looks_closely = 1.0
    world.run()


@pytest.mark.parametrize("edited_first", [True, False])
def test_an_edit_and_a_redaction_on_two_machines_both_stand(
    edited_first: bool, folder: Path, team: dict[str, Path]
) -> None:
    """Whichever comes first, the edit's words are kept, and the secret is on no machine any more."""
    with history(folder, team) as world:
        world.leave_raw()
        first, second = world.laptops[:2]
        [raw] = [one for one in first.trivet.engine.store.memories.everything() if RAW in one.content]
        word = world.word("ana", raw.id)
        first.trivet.edit(raw.id, content=f"{word} is said now.")
        world.redact(second.trivet, "ana", list(second.trivet.engine.store.memories.everything()))
        for laptop in (first, second) if edited_first else (second, first):
            world.exchange(laptop)
        world.come_to_rest()
        check_at_rest(world)
        trunk = world.server.rows("SELECT snapshot FROM revision ORDER BY memory, revision")
        assert any(word in row[0] for row in trunk) == edited_first
        assert bool(world.server.rows("SELECT 1 FROM branch WHERE waiting = 1")) != edited_first


@pytest.mark.parametrize("scopes", [(), ("work",)])
def test_an_answer_of_a_server_that_was_put_back_since(
    scopes: tuple[str, ...], folder: Path, team: dict[str, Path]
) -> None:
    """A laptop that holds everything heals the server; one of other scopes has let go what the server said it has."""
    with history(folder, team) as world:
        laptop = world.laptops[0]
        join(laptop.trivet.engine, "http://server", "ana", scopes=scopes)
        world.come_to_rest()
        world.server.back_up()
        word = world.word("ana", laptop.trivet.remember(f"canary{world.count + 1}q was said.", scope="default").id)
        world.ask_for(laptop, 1)
        world.deliver_some()
        world.put_server_back()
        world.deliver_some()
        world.come_to_rest()
        check_at_rest(world)
        assert (word in words_on_server(world)) == (not scopes)
        assert (word in world.forgivable) == bool(scopes)


def test_numbers_that_are_counted_again_hide_nothing(folder: Path, team: dict[str, Path]) -> None:
    """The server is put back twice, and the laptop could not send it anything in between."""
    with history(folder, team) as world:
        other, laptop = world.laptops[:2]
        world.server.back_up()
        id = edited_often(world, laptop, laptop.trivet.remember("was said.").id)
        for _ in range(2):  # the second time the server has all that the laptop has pulled since, and not what it knew
            world.put_server_back()
            level(world, laptop)
        edited_at_last(world, other, id)


def test_numbers_of_what_is_outside_for_a_while_hide_nothing(folder: Path, team: dict[str, Path]) -> None:
    """As far as the backup knows, what waits to be brought back is in none of the laptop's scopes."""
    with history(folder, team) as world:
        other, laptop = world.laptops[:2]
        id = laptop.trivet.remember("was said.").id
        world.come_to_rest()
        world.server.back_up()
        laptop.trivet.edit(id, scope="work")
        world.come_to_rest()
        join(laptop.trivet.engine, "http://server", "ana", scopes=("work",))
        world.come_to_rest()
        edited_often(world, laptop, id)
        world.put_server_back()
        level(world, laptop)
        edited_at_last(world, other, id)


@pytest.mark.parametrize("pulls_first", [True, False])
def test_shares_are_brought_back_as_their_owner_left_them(
    pulls_first: bool, folder: Path, team: dict[str, Path]
) -> None:
    """Also by a laptop that has pulled, since, how the backup has them."""
    with history(folder, team) as world:
        laptop = world.laptops[0]
        ended, begun = (laptop.trivet.remember(f"{number} was said.").id for number in range(2))
        laptop.trivet.share(id=ended, user="bo", permission="read")
        world.come_to_rest()
        world.server.back_up()
        laptop.trivet.unshare(id=ended, user="bo")
        laptop.trivet.share(id=begun, user="bo", permission="read")
        world.come_to_rest()
        world.put_server_back()
        if pulls_first:
            level(world, laptop)
        world.come_to_rest()
        check_at_rest(world)
        held = {row[0] for row in world.laptops[2].rows("SELECT id FROM memory")}
        assert (ended in held, begun in held) == (False, True)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_names_of_one_memory_are_one_memory(order: tuple[int, int], folder: Path, team: dict[str, Path]) -> None:
    """In one life of the server its id was another user's, so that one of two laptops knows it by another name."""
    with history(folder, team) as world:
        first, second, others = world.laptops[:3]
        world.server.back_up()
        first.trivet.remember(f"{world.word('ana', SHARED_IDS[0])} was said.", id=SHARED_IDS[0])
        for laptop in (first, second):
            world.exchange(laptop)
            world.exchange(laptop)
        world.put_server_back(0)
        others.trivet.remember(f"{world.word('bo', SHARED_IDS[0])} was said.", id=SHARED_IDS[0])
        for laptop in (others, others, second, second):
            world.exchange(laptop)
        assert (other_id(SHARED_IDS[0], "ana"),) in second.rows("SELECT id FROM memory")
        world.put_server_back(0)
        for place in order * 2:
            world.exchange(world.laptops[place])
        world.come_to_rest()
        check_at_rest(world)
        assert len(world.server.rows("SELECT 1 FROM memory")) == len(world.words)


def test_words_that_wait_to_be_brought_back_are_parked_when_the_memory_is_taken(
    folder: Path, team: dict[str, Path]
) -> None:
    """The backup is older than the share by which they were written. Of the owner's words nothing is kept."""
    with history(folder, team) as world:
        laptop, owners = world.laptops[0], world.laptops[2]
        id = owners.trivet.remember("Theirs was said.").id
        world.come_to_rest()
        world.server.back_up()
        owners.trivet.share(id=id, user="ana", permission="write")
        world.come_to_rest()
        word = world.word("ana", id)
        laptop.trivet.edit(id, title=f"{word} title")
        world.exchange(laptop)
        world.put_server_back()
        level(world, laptop)
        assert (id,) not in laptop.rows("SELECT id FROM memory")
        [(body,)] = laptop.rows("SELECT body FROM parked")
        assert word in body
        assert "Theirs" not in body
        world.come_to_rest()
        check_at_rest(world)


def edited_often(world: World, laptop: LaptopMachine, id: str) -> str:
    """Each edit with a number of its own."""
    for number in range(4):
        laptop.trivet.edit(id, title=f"{number}")
        world.exchange(laptop)
    return id


def level(world: World, laptop: LaptopMachine) -> None:
    """It pulls, and what it has to send waits."""
    for _ in range(LEVEL):
        world.exchange(laptop, most=0)


def edited_at_last(world: World, other: LaptopMachine, id: str) -> None:
    """What another laptop says then must come, though the server has given higher numbers in its life before."""
    world.come_to_rest()
    other.trivet.edit(id, content=f"{world.word('ana', id)} is said now.")
    world.come_to_rest()
    check_at_rest(world)


@contextmanager
def history(folder: Path, team: dict[str, Path]) -> Iterator[World]:
    """One that is told by hand, without faults of its own."""
    world = World(1, folder, team, 0)
    world.crashes = world.loss = world.twice = 0.0
    with seeded(world.random):
        yield world
    for machine in (world.server, *world.laptops):
        machine.trivet.close()


@pytest.mark.parametrize("name", PLANTED)
def test_a_rule_that_is_switched_off_is_noticed(name: str, tmp_path: Path, team: dict[str, Path]) -> None:
    """By the history that is known to show it, or, once that is told otherwise, by one of the next ones."""
    assert name in FAULTS
    assert any(noticed(name, seed, tmp_path, team) for seed in range(PLANTED[name], PLANTED[name] + MOST_SEEDS))


def noticed(name: str, seed: int, tmp_path: Path, team: dict[str, Path]) -> bool:
    with TemporaryDirectory(dir=tmp_path) as folder:
        world = World(seed, Path(folder), team, STEPS)
        try:
            with planted(name, world):
                world.run()
        except (AssertionError, KeyError):
            return True
    return False
