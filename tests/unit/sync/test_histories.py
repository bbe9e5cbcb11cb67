"""A few histories of laptops and a server over real stores, and faults that they must notice (soak/syncing)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from soak.syncing.check import check_at_rest, words_on_server
from soak.syncing.faults import FAULTS, planted
from soak.syncing.machines import LaptopMachine, caller, memory_disk
from soak.syncing.people import RAW, SHARED_IDS, TOKEN
from soak.syncing.world import LEVEL, World
from support.told_history import history, level
from trivet.sync.core import reassigned_id
from trivet.sync.laptop import join, leave

STEPS = 70
MOST_SEEDS = 60
# Some more, as short as troubles can follow each other in; none of their seeds is one of the long campaign's.
SHORT_STEPS, SHORT_PART = 25, 20
SHORT_SEEDS = range(9_000_000, 9_000_080)
# Each with a seed whose history shows it; `python -m soak.syncing --faults` finds them, and plants the others too.
PLANTED = {
    "a clash overwrites": 13,
    "the loser of a clash is dropped": 2,
    "a repeated operation acts again": 0,
    "words written while sensitive are dropped": 1,
    "the place moves on before the items are written": 1,
    "what is refused is dropped": 1,
    "nobody heals a server that was put back": 2,
    "purges are not sent": 4,
    "a full pull deletes what is one's own": 2,
    "what a user may not read is sent": 3,
    "sensitive memories are sent": 0,
    "edits that wait are not put on top": 2,
    "what was taken from a user stays": 15,
    "a purge leaves bytes behind": 0,
    "what older epochs told is not carried": 7,
    "what is outside of a laptop's scopes is deleted": 4,
    "feedback is not sent": 0,
    "rights are not checked on the server": 254,
}


@pytest.mark.parametrize("seed", [1, 13, 26])
def test_a_history_ends_with_everything_in_its_place(
    seed: int, folder: Path, team: dict[str, Path]
) -> None:
    world = World(seed, folder, team, STEPS)
    world.looks_closely = 1.0
    world.run()


@pytest.mark.parametrize("first", SHORT_SEEDS[::SHORT_PART])
def test_short_histories_end_with_everything_in_its_place(
    first: int, team: dict[str, Path]
) -> None:
    said: Counter[str] = Counter()
    for seed in range(first, first + SHORT_PART):
        with TemporaryDirectory(dir=memory_disk()) as folder:
            world = World(seed, Path(folder), team, SHORT_STEPS)
            world.run()
        said += world.counts
    assert said["message delivered"] > SHORT_PART  # they do speak with each other


@pytest.mark.parametrize("edited_first", [True, False])
def test_an_edit_and_a_redaction_on_two_machines_both_stand(
    edited_first: bool, folder: Path, team: dict[str, Path]
) -> None:
    """Whichever comes first, the edit's words are kept, and the secret is on no machine any more."""
    with history(folder, team) as world:
        world.leave_raw()
        first, second = world.laptops[:2]
        [raw] = [
            one for one in first.trivet.engine.store.memories.everything() if RAW in one.content
        ]
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
        word = world.word(
            "ana", laptop.trivet.remember(f"canary{world.count + 1}q was said.", scope="default").id
        )
        world.ask_for(laptop, 1)
        world.deliver_some()
        world.put_server_back()
        world.deliver_some()
        world.come_to_rest()
        check_at_rest(world)
        assert (word in words_on_server(world)) == (not scopes)
        assert (word in world.forgivable) == bool(scopes)


def test_what_was_taken_from_a_user_before_the_server_was_put_back(
    folder: Path, team: dict[str, Path]
) -> None:
    """The answer that says so is under way meanwhile: the laptop obeys it, though only it still has the words."""
    with history(folder, team) as world:
        laptop, owner = world.laptops[0], world.laptops[2]
        id = owner.trivet.remember("canary was said.").id
        world.come_to_rest()
        owner.trivet.share(id=id, user="ana", permission="write")
        world.come_to_rest()
        world.server.back_up()
        word = world.word("ana", id)
        laptop.trivet.edit(id, content=f"{word} is said now.")
        for _ in range(2):  # that it was taken in, the laptop never hears
            world.network.clear()
            world.ask_for(laptop, 1)
            world.deliver_some()
            world.server.trivet.acting_as(caller("bo")).forget(id)
        world.put_server_back()
        world.deliver_some()
        world.come_to_rest()
        check_at_rest(world)
        assert word not in words_on_server(world)
        assert word in world.forgivable


def test_numbers_that_are_counted_again_hide_nothing(folder: Path, team: dict[str, Path]) -> None:
    """The server is put back twice, and the laptop could not send it anything in between."""
    with history(folder, team) as world:
        other, laptop = world.laptops[:2]
        world.server.back_up()
        id = edited_often(world, laptop, laptop.trivet.remember("was said.").id)
        for _ in range(
            2
        ):  # the second time the server has all that the laptop has pulled since, and not what it knew
            world.put_server_back()
            level(world, laptop)
        edited_at_last(world, other, id)


def test_numbers_of_what_is_outside_for_a_while_hide_nothing(
    folder: Path, team: dict[str, Path]
) -> None:
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


@pytest.mark.parametrize(("left", "again"), [("read", False), ("none", False), ("none", True)])
def test_what_was_taken_since_does_not_come_back_with_a_late_laptop(
    left: str, again: bool, folder: Path, team: dict[str, Path]
) -> None:
    """The owner's second laptop was there last before the server was put back, and knows the share as it was then.

    That it was taken since the server knows, or, if that is put back `again`, the first laptop alone.
    """
    with history(folder, team) as world:
        first, second, others = world.laptops[:3]
        id = first.trivet.remember("was said.").id
        first.trivet.share(id=id, user="bo", permission="write")
        world.come_to_rest()
        world.server.back_up()
        edited_often(world, second, id)
        world.put_server_back(0)
        if left == "none":
            first.trivet.unshare(id=id, user="bo")
        else:
            first.trivet.share(id=id, user="bo", permission="read")
        for laptop in (first, others) * LEVEL:
            world.exchange(laptop)
        if again:
            world.put_server_back(0)
        world.exchange(second)
        world.exchange(second)
        world.come_to_rest()
        check_at_rest(world)
        rows = others.rows(f"SELECT access FROM replica WHERE id = '{id}'")
        assert rows == ([] if left == "none" else [("read",)])


def test_what_was_told_since_is_brought_back_with_what_was_sent_before(
    folder: Path, team: dict[str, Path]
) -> None:
    """The backup knows what the laptop had sent without hearing of it, and lacks what it has pulled since."""
    with history(folder, team) as world:
        first, others = world.laptops[0], world.laptops[2]
        id = first.trivet.remember("was said.").id
        first.trivet.share(id=id, user="bo", permission="write")
        world.come_to_rest()
        world.server.back_up()
        edited_often(world, first, id)
        world.put_server_back(0)
        world.exchange(first, most=0)
        world.ask_for(first, 50)
        world.deliver_some()
        world.network.clear()  # the answer is lost
        world.server.back_up()
        word = world.word("bo", id)
        others.trivet.edit(id, title=f"{word} title")
        for laptop in (others, others, others):
            world.exchange(laptop)
        for _ in range(LEVEL):
            world.exchange(first, most=0)
        world.laptops.remove(others)  # who wrote it is not there to bring it back
        others.trivet.close()
        world.put_server_back(1)
        world.come_to_rest()
        check_at_rest(world)
        assert word in words_on_server(world)


def test_a_memory_that_is_told_under_its_new_id_before_it_is_acknowledged_keeps_its_secret(
    folder: Path, team: dict[str, Path]
) -> None:
    """The value is on this machine alone."""
    with history(folder, team) as world:
        id, laptop = SHARED_IDS[0], world.laptops[0]
        world.server.trivet.acting_as(caller("bo")).remember(
            f"{world.word('bo', id)} was said.", id=id
        )
        laptop.trivet.remember(f"{world.word('ana', id)} the token is {TOKEN}", id=id)
        world.ask_for(laptop, 1)
        world.deliver_some()
        world.network.clear()  # the answer is lost
        level(world, laptop)
        assert len(laptop.rows("SELECT 1 FROM memory WHERE content LIKE '%token%'")) == 2
        world.come_to_rest()
        check_at_rest(world)
        assert TOKEN in laptop.trivet.reveal(reassigned_id(id, "ana")).content


def test_a_secret_stays_though_its_memory_is_outside_of_the_laptops_scopes(
    folder: Path, team: dict[str, Path]
) -> None:
    """The server has the memory and not the value."""
    with history(folder, team) as world:
        laptop = world.laptops[0]
        join(laptop.trivet.engine, "http://server", "ana", scopes=("work",))
        world.come_to_rest()
        id = laptop.trivet.remember(
            f"canary{world.count + 1}q the token is {TOKEN}", scope="default"
        ).id
        plain = laptop.trivet.remember("was said.", scope="default").id
        world.word("ana", id)
        world.come_to_rest()
        check_at_rest(world)
        assert TOKEN in laptop.trivet.reveal(id).content
        assert (plain,) not in laptop.rows("SELECT id FROM memory")
        left = laptop.trivet.remember(
            f"canary{world.count + 1}q the token is {TOKEN}", scope="work"
        ).id
        world.word("ana", left)
        world.come_to_rest()
        world.laptops[1].trivet.edit(left, scope="default")
        world.come_to_rest()
        check_at_rest(world)
        assert TOKEN in laptop.trivet.reveal(left).content
        connection = laptop.trivet.engine.store.feed.database.read()
        compared = {row["id"] for row in connection.execute(connection.sql("replica")["heads"])}
        assert not compared & {id, left}  # `sync verify` asks the server for what is in the scopes


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


def test_who_leaves_keeps_what_they_wrote_for_others(folder: Path, team: dict[str, Path]) -> None:
    """The memory goes. What was not sent of it, or was refused, can still be read."""
    with history(folder, team) as world:
        laptop, owners = world.laptops[0], world.laptops[2]
        id = owners.trivet.remember("Theirs was said.").id
        owners.trivet.share(id=id, user="ana", permission="write")
        world.come_to_rest()
        laptop.trivet.edit(id, title="first")
        owners.trivet.unshare(id=id, user="ana")
        owners.trivet.share(id=id, user="ana", permission="read")
        for each in (owners, laptop, laptop):
            world.exchange(each)
        owners.trivet.share(id=id, user="ana", permission="write")
        world.come_to_rest()
        laptop.trivet.edit(id, title="second")
        leave(laptop.trivet.engine)
        assert (id,) not in laptop.rows("SELECT id FROM memory")
        assert [one.said for one in laptop.trivet.sync_refused()] == [
            {"title": "first"},
            {"title": "second"},
        ]


def edited_often(world: World, laptop: LaptopMachine, id: str) -> str:
    """Each edit with a number of its own."""
    for number in range(4):
        laptop.trivet.edit(id, title=f"{number}")
        world.exchange(laptop)
    return id


def edited_at_last(world: World, other: LaptopMachine, id: str) -> None:
    """What another laptop says then must come, though the server has given higher numbers in its life before."""
    world.come_to_rest()
    other.trivet.edit(id, content=f"{world.word('ana', id)} is said now.")
    world.come_to_rest()
    check_at_rest(world)


@pytest.mark.parametrize("name", PLANTED)
def test_a_rule_that_is_switched_off_is_noticed(
    name: str, tmp_path: Path, team: dict[str, Path]
) -> None:
    """By the history that is known to show it, or, once that is told otherwise, by one of the next ones."""
    assert name in FAULTS
    assert any(
        noticed(name, seed, tmp_path, team)
        for seed in range(PLANTED[name], PLANTED[name] + MOST_SEEDS)
    )


def test_a_redaction_that_is_not_sent_is_noticed(folder: Path, team: dict[str, Path]) -> None:
    """Few histories redact anything that others hold, so this one is told by hand."""
    with history(folder, team) as world:
        world.leave_raw()
        laptop = world.laptops[0]
        with planted("redactions are not sent", world):
            world.redact(
                laptop.trivet, "ana", list(laptop.trivet.engine.store.memories.everything())
            )
            world.come_to_rest()
            with pytest.raises(AssertionError, match=RAW):
                check_at_rest(world)


def noticed(name: str, seed: int, tmp_path: Path, team: dict[str, Path]) -> bool:
    with TemporaryDirectory(dir=memory_disk()) as folder:
        world = World(seed, Path(folder), team, STEPS)
        try:
            with planted(name, world):
                world.run()
        except (AssertionError, KeyError):
            return True
    return False


def test_what_was_told_as_sensitive_and_is_not_any_more_comes_back_to_a_server_that_was_put_back(
    folder: Path, team: dict[str, Path]
) -> None:
    """It heard that the memory is sensitive, and was put back before it heard that it no longer is."""
    with history(folder, team) as world:
        laptop = world.laptops[0]
        world.server.back_up()
        id = laptop.trivet.remember("was said.").id
        laptop.trivet.edit(id, sensitive=True)
        laptop.laptop.ask(0)  # puts both into the outbox
        word = world.word("ana", id)
        laptop.trivet.edit(id, content=f"{word} is said now.", sensitive=False)
        laptop.trivet.share(id=id, user="bo", permission="read")
        world.exchange(laptop, most=2)
        world.put_server_back()
        world.come_to_rest()
        check_at_rest(world)
        assert word in words_on_server(world)
        assert not laptop.rows("SELECT 1 FROM parked")


def test_a_purge_that_was_not_sent_before_a_laptop_left_is_sent_when_it_joins_again(
    folder: Path, team: dict[str, Path]
) -> None:
    with history(folder, team) as world:
        laptop = world.laptops[0]
        id = laptop.trivet.remember("was said.").id
        world.come_to_rest()
        laptop.trivet.purge(id)
        leave(laptop.trivet.engine)
        join(laptop.trivet.engine, "http://server", "ana")
        world.come_to_rest()
        check_at_rest(world)
        for machine in (world.server, *world.laptops):
            assert not machine.rows(f"SELECT 1 FROM memory WHERE id = '{id}'")
