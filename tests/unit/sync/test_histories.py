"""Sync histories over real stores converge, and planted faults are detected (soak/syncing)."""

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
from support.scripted_history import history, level
from trivet.common.ids import reassigned_id
from trivet.sync.laptop import join, leave

STEPS = 70
MOST_SEEDS = 60
# Additional short histories, which pack faults close together. Their seeds are disjoint from those
# of the long campaign.
SHORT_STEPS, SHORT_PART = 25, 20
SHORT_SEEDS = range(9_000_000, 9_000_080)
# Maps each fault to a seed that reveals it; `python -m soak.syncing --faults` finds them, and
# plants the other faults too.
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
def test_history_converges(seed: int, folder: Path, team: dict[str, Path]) -> None:
    world = World(seed, folder, team, STEPS)
    world.looks_closely = 1.0
    world.run()


@pytest.mark.parametrize("first", SHORT_SEEDS[::SHORT_PART])
def test_short_histories_converge(first: int, team: dict[str, Path]) -> None:
    said: Counter[str] = Counter()
    for seed in range(first, first + SHORT_PART):
        with TemporaryDirectory(dir=memory_disk()) as folder:
            world = World(seed, Path(folder), team, SHORT_STEPS)
            world.run()
        said += world.counts
    assert said["message delivered"] > SHORT_PART  # ensures that messages were exchanged


@pytest.mark.parametrize("edited_first", [True, False])
def test_concurrent_edit_and_redaction_both_apply(
    edited_first: bool, folder: Path, team: dict[str, Path]
) -> None:
    """In either order, the edit's text is kept and the secret is removed from every machine."""
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
def test_response_from_before_server_restore(
    scopes: tuple[str, ...], folder: Path, team: dict[str, Path]
) -> None:
    """A full-scope laptop heals the server; one with fewer scopes dropped what was confirmed."""
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


def test_access_revoked_before_server_restore(folder: Path, team: dict[str, Path]) -> None:
    """The laptop obeys a revocation in transit during the restore, though only it has the text."""
    with history(folder, team) as world:
        laptop, owner = world.laptops[0], world.laptops[2]
        id = owner.trivet.remember("canary was said.").id
        world.come_to_rest()
        owner.trivet.share(id=id, user="ana", permission="write")
        world.come_to_rest()
        world.server.back_up()
        word = world.word("ana", id)
        laptop.trivet.edit(id, content=f"{word} is said now.")
        for _ in range(2):  # the laptop never receives the acknowledgment
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


def test_reused_sequence_numbers_hide_nothing(folder: Path, team: dict[str, Path]) -> None:
    """The server is restored twice, and the laptop could send nothing in between."""
    with history(folder, team) as world:
        other, laptop = world.laptops[:2]
        world.server.back_up()
        id = edited_often(world, laptop, laptop.trivet.remember("was said.").id)
        for _ in range(
            2
        ):  # on the second restore, the server has all that the laptop has pulled since, but not what it knew
            world.put_server_back()
            level(world, laptop)
        edited_at_last(world, other, id)


def test_sequence_numbers_outside_scope_hide_nothing(folder: Path, team: dict[str, Path]) -> None:
    """In the backup, the memory to restore is in none of the laptop's scopes."""
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
def test_restored_shares_match_last_owner_state(
    pulls_first: bool, folder: Path, team: dict[str, Path]
) -> None:
    """This holds even for a laptop that has since pulled the backup's shares."""
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
def test_late_laptop_does_not_restore_revoked_share(
    left: str, again: bool, folder: Path, team: dict[str, Path]
) -> None:
    """The owner's second laptop last synced before the restore and knows the old share.

    The server knows of the revocation, or, if it is restored `again`, only the first laptop does.
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


def test_pulled_and_unacknowledged_edits_are_restored(folder: Path, team: dict[str, Path]) -> None:
    """The backup has the laptop's unacknowledged edits but lacks what it has pulled since."""
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
        world.network.clear()  # the response is lost
        world.server.back_up()
        word = world.word("bo", id)
        others.trivet.edit(id, title=f"{word} title")
        for laptop in (others, others, others):
            world.exchange(laptop)
        for _ in range(LEVEL):
            world.exchange(first, most=0)
        world.laptops.remove(others)  # the author is not there to restore it
        others.trivet.close()
        world.put_server_back(1)
        world.come_to_rest()
        check_at_rest(world)
        assert word in words_on_server(world)


def test_memory_with_reassigned_id_keeps_its_secret(folder: Path, team: dict[str, Path]) -> None:
    """Only this machine holds the secret's value."""
    with history(folder, team) as world:
        id, laptop = SHARED_IDS[0], world.laptops[0]
        world.server.trivet.acting_as(caller("bo")).remember(
            f"{world.word('bo', id)} was said.", id=id
        )
        laptop.trivet.remember(f"{world.word('ana', id)} the token is {TOKEN}", id=id)
        world.ask_for(laptop, 1)
        world.deliver_some()
        world.network.clear()  # the response is lost
        level(world, laptop)
        assert len(laptop.rows("SELECT 1 FROM memory WHERE content LIKE '%token%'")) == 2
        world.come_to_rest()
        check_at_rest(world)
        assert TOKEN in laptop.trivet.reveal(reassigned_id(id, "ana")).content


def test_secret_outside_laptop_scopes_is_kept(folder: Path, team: dict[str, Path]) -> None:
    """The server has the memory but not the secret's value."""
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
        assert not compared & {
            id,
            left,
        }  # `sync verify` compares only memories in the laptop's scopes


def test_pending_edit_is_parked_when_access_is_lost(folder: Path, team: dict[str, Path]) -> None:
    """The backup is older than the share that allowed the edit.

    None of the owner's text is kept.
    """
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


def test_leaving_keeps_own_edits_of_shared_memories(folder: Path, team: dict[str, Path]) -> None:
    """The memory is removed, but unsent and refused edits stay readable."""
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
    """Edit the memory several times, sending each edit separately."""
    for number in range(4):
        laptop.trivet.edit(id, title=f"{number}")
        world.exchange(laptop)
    return id


def edited_at_last(world: World, other: LaptopMachine, id: str) -> None:
    """Check that another laptop's edit arrives although the server has used higher numbers."""
    world.come_to_rest()
    other.trivet.edit(id, content=f"{world.word('ana', id)} is said now.")
    world.come_to_rest()
    check_at_rest(world)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_detected(name: str, tmp_path: Path, team: dict[str, Path]) -> None:
    """Try the seed known to reveal the fault, then the next ones if its history has changed."""
    assert name in FAULTS
    assert any(
        noticed(name, seed, tmp_path, team)
        for seed in range(PLANTED[name], PLANTED[name] + MOST_SEEDS)
    )


def test_unsent_redaction_is_detected(folder: Path, team: dict[str, Path]) -> None:
    """Few random histories redact anything that others hold, so this one is written by hand."""
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


def test_no_longer_sensitive_memory_is_restored(folder: Path, team: dict[str, Path]) -> None:
    """The server was restored before it learned that the memory is no longer sensitive."""
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


def test_unsent_purge_is_sent_after_rejoining(folder: Path, team: dict[str, Path]) -> None:
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
