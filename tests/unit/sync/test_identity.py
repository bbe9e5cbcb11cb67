"""A memory known by several ids is identified by its first revision (soak/syncing)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import pytest

from soak.syncing.check import check_at_rest, words_on, words_on_server
from soak.syncing.machines import caller
from soak.syncing.people import SHARED_IDS
from soak.syncing.team import Request
from soak.syncing.world import LEVEL, World
from support.scripted_history import history, level
from trivet import Trivet
from trivet.common.ids import new_id, reassigned_id
from trivet.store.records import Bundle
from trivet.store.relational.tables.sync_bundles import read_bundles
from trivet.sync import server as server_side
from trivet.sync.laptop import join, leave
from trivet.sync.messages import Acks, Op, Place

IDS = (SHARED_IDS[0], "01890a5d-ac96-774b-bcce-b302099a8057")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("id", IDS)
def test_two_ids_of_one_memory_merge(
    id: str, order: tuple[int, int], folder: Path, team: dict[str, Path]
) -> None:
    """Another user owned the id in one server epoch, so one laptop knows a second id."""
    with history(folder, team) as world:
        known_by_two_names(world, id)
        world.put_server_back(0)
        for place in order * 2:
            world.exchange(world.laptops[place])
        world.come_to_rest()
        check_at_rest(world)
        assert len(world.server.rows("SELECT 1 FROM memory")) == len(world.words)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_ids_merge_after_rejoining(
    order: tuple[int, int], folder: Path, team: dict[str, Path]
) -> None:
    """Each laptop recreates its memories under the id it knows."""
    with history(folder, team) as world:
        known_by_two_names(world, SHARED_IDS[0])
        world.put_server_back(0)
        for place in order:
            laptop = world.laptops[place]
            leave(laptop.trivet.engine)
            join(laptop.trivet.engine, "http://server", "ana")
            world.exchange(laptop)
        world.come_to_rest()
        check_at_rest(world)
        assert len(world.server.rows("SELECT 1 FROM memory")) == len(world.words)


@pytest.mark.parametrize(("id", "purging", "order"), [
    (IDS[0], 0, (0, 1)), (IDS[0], 0, (1, 0)), (IDS[0], 1, (0, 1)), (IDS[0], 1, (1, 0)), (IDS[1], 1, (1, 0)),
])  # fmt: skip
def test_purge_under_one_id_purges_the_other(
    id: str, purging: int, order: tuple[int, int], folder: Path, team: dict[str, Path]
) -> None:
    """This holds whichever laptop purges and whichever syncs first after the restore."""
    with history(folder, team) as world:
        word = known_by_two_names(world, id)
        world.put_server_back(0)
        laptop = world.laptops[purging]
        laptop.trivet.purge(reassigned_id(id, "ana") if purging else id)
        for place in order * 2:
            world.exchange(world.laptops[place])
        world.come_to_rest()
        check_at_rest(world)
        for machine in (world.server, *world.laptops):
            machine.trivet.engine.store.upkeep.finish_erasing(of_any_size=True)
            assert word.encode() not in machine.bytes()
        world.put_server_back(0)  # the server must also remember which ids the purged memory had
        world.come_to_rest()
        assert word not in words_on_server(world)


@pytest.mark.parametrize("brought_first", [True, False])
def test_purge_applies_although_first_id_was_reused(
    brought_first: bool, folder: Path, team: dict[str, Path]
) -> None:
    """The server imported the file again, so another memory has the first laptop's id."""
    with history(folder, team) as world:
        id, (first, second) = SHARED_IDS[0], world.laptops[:2]
        word = known_by_two_names(world, id)
        world.put_server_back(0)
        world.server.trivet.acting_as(caller("ana")).remember(
            f"{world.word('ana', id)} was said.", id=id
        )
        first.trivet.purge(id)
        for laptop in (
            (second, second, first, first) if brought_first else (first, first, second, second)
        ):
            world.exchange(laptop)
        world.come_to_rest()
        check_at_rest(world)
        assert word not in words_on_server(world)


@pytest.mark.parametrize("purged", [True, False])
def test_two_memories_merged_in_one_epoch_separate_again(
    purged: bool, folder: Path, team: dict[str, Path]
) -> None:
    """Both needed another id, and the second became a branch of the first.

    Each must exist once or be purged.
    """
    with history(folder, team) as world:
        id, laptop = SHARED_IDS[0], world.laptops[0]
        world.server.back_up()
        world.server.trivet.acting_as(caller("bo")).remember(
            f"{world.word('bo', id)} was said.", id=id
        )
        first, second = world.word("ana", reassigned_id(id, "ana")), world.word("ana", id)
        laptop.trivet.remember(f"{first} was said.", id=id)
        for _ in range(LEVEL):
            world.exchange(laptop)
        laptop.trivet.remember(f"{second} was said.", id=id)
        laptop.laptop.ask(1)  # name its revision before it is copied
        clone = laptop.cloned("clone")
        world.laptops.append(clone)
        world.exchange(clone)
        assert world.server.rows("SELECT 1 FROM branch")
        with world.forgiven():
            world.put_server_back(0)
        for _ in range(LEVEL):
            world.exchange(laptop)
        if purged:
            laptop.trivet.purge(id)
        world.come_to_rest()
        check_at_rest(world)
        words = words_on_server(world)
        assert (first in words, second in words) == (True, not purged)


@pytest.mark.parametrize("told_first", [True, False])
def test_pending_operations_follow_id_change(
    told_first: bool, folder: Path, team: dict[str, Path]
) -> None:
    """Covers an edit, feedback and a link, before and after the laptop learns the other id."""
    with history(folder, team) as world:
        id, (first, second) = SHARED_IDS[0], world.laptops[:2]
        known_by_two_names(world, id)
        world.put_server_back(0)
        for _ in range(LEVEL):
            world.exchange(second)
        if told_first:
            level(world, first)
        word, other = world.word("ana", id), first.trivet.remember("The other was said.").id
        with first.trivet.engine.store.feed.transaction() as connection:
            refused = {
                "op": "refused",
                "kind": "edit",
                "id": id,
                "rev": None,
                "body": "refused",
                "reason": "",
                "at": "",
            }
            connection.execute(connection.sql("replica")["park"], refused)
        first.trivet.edit(id, title=f"{word} title")
        first.trivet.feedback(id, verdict="useful", query="asked")
        first.trivet.link(id, "see-also", other)
        first.trivet.link(other, "see-also", id)
        for _ in range(20):
            world.exchange(first, most=1)
        world.come_to_rest()
        check_at_rest(world)
        assert word in words_on_server(world)
        assert first.rows("SELECT id, body FROM parked") == [(reassigned_id(id, "ana"), "refused")]
        assert world.server.rows("SELECT query FROM feedback") == [("asked",)]
        linked = f"SELECT 1 FROM link AS l JOIN memory AS m ON m.key IN (l.source, l.target) WHERE m.id = '{other}'"
        assert len(world.server.rows(linked)) == 2


@pytest.mark.parametrize("named", [0, 1])
def test_other_users_edit_is_restored_under_current_id(
    named: int, folder: Path, team: dict[str, Path]
) -> None:
    """Bo may write Ana's memory and knows one id; her laptop has restored it under the other."""
    with history(folder, team) as world:
        id, others = SHARED_IDS[0], world.laptops[2]
        known_by_two_names(world, id)
        world.put_server_back(0)
        others.trivet.purge(id)
        name = (id, reassigned_id(id, "ana"))[named]
        world.laptops[named].trivet.share(id=name, user="bo", permission="write")
        for laptop in (world.laptops[named], world.laptops[named], *[others] * 6):
            world.exchange(laptop)
        word = world.word("bo", name)
        others.trivet.edit(name, title=f"{word} title")
        world.exchange(others)
        world.put_server_back(0)
        world.laptops[1 - named].trivet.share(
            id=(id, reassigned_id(id, "ana"))[1 - named], user="bo", permission="write"
        )
        for _ in range(LEVEL):
            world.exchange(world.laptops[1 - named])
        world.come_to_rest()
        check_at_rest(world)
        assert word in words_on_server(world)
        assert not others.rows("SELECT 1 FROM parked")


def known_by_two_names(world: World, id: str) -> str:
    """Give Ana's memory one id on her first laptop and another on her second; return its word."""
    first, second, others = world.laptops[:3]
    world.server.back_up()
    word = world.word("ana", id)
    first.trivet.remember(f"{word} was said.", id=id)
    for laptop in (first, second):
        world.exchange(laptop)
        world.exchange(laptop)
    world.put_server_back(0)
    others.trivet.remember(f"{world.word('bo', id)} was said.", id=id)
    for laptop in (others, others, second, second):
        world.exchange(laptop)
    assert (reassigned_id(id, "ana"),) in second.rows("SELECT id FROM memory")
    return word


def test_healed_branch_goes_to_its_own_memory(folder: Path, team: dict[str, Path]) -> None:
    """In one server epoch the second memory was a branch of the first; now each has its own id."""
    with history(folder, team) as world:
        ana, id, another = two_that_were_one(world)
        first, second = (bundle_of(world, name) for name in (id, another))
        branch = msgspec.structs.replace(second.head, number=0)
        both = msgspec.structs.replace(first, id=another, branches=(branch,), waiting=(branch.rev,))
        answer = server_side.push(
            ana.engine, Place(), [Op(op=new_id(), kind="heal", id=another, bundle=both)]
        )
        assert isinstance(answer, Acks)
        assert answer.acks[0].id == id
        assert (bundle_of(world, id).revs.keys(), bundle_of(world, another).revs.keys()) == (
            first.revs.keys(),
            second.revs.keys(),
        )


@pytest.mark.parametrize("kind", ["create", "heal"])
def test_branch_does_not_move_to_another_memory(
    kind: Literal["create", "heal"], folder: Path, team: dict[str, Path]
) -> None:
    """Two machines created a memory with one id, and both its ids now belong to other memories."""
    with history(folder, team) as world:
        ana, id, another = two_that_were_one(world)
        said = bundle_of(world, id).head
        clash = msgspec.structs.replace(
            said,
            rev=new_id(),
            number=0,
            author="ana",
            fields={**said.fields, "content": "third was said."},
        )
        second = bundle_of(world, another)
        both = msgspec.structs.replace(second, branches=(clash,), waiting=(clash.rev,))
        begun = msgspec.structs.replace(
            second, id=id, trunk=(msgspec.structs.replace(clash, number=1),)
        )
        again = {
            "create": Op(op=new_id(), kind="create", id=id, rev=clash.rev, fields=clash.fields),
            "heal": Op(op=new_id(), kind="heal", id=id, bundle=begun),
        }
        answer = server_side.push(
            ana.engine,
            Place(),
            [Op(op=new_id(), kind="heal", id=another, bundle=both), again[kind]],
        )
        assert isinstance(answer, Acks)
        assert [one.id for one in answer.acks] == [another, another]
        assert world.server.rows(f"SELECT waiting FROM branch WHERE rev = '{clash.rev}'") == [(1,)]


def two_that_were_one(world: World) -> tuple[Trivet, str, str]:
    """Create Ana's memories under both ids that a vault memory of hers can have."""
    ana, id = world.server.trivet.acting_as(caller("ana")), SHARED_IDS[0]
    another = reassigned_id(id, "ana")
    ana.remember("first was said.", id=id)
    ana.remember("second was said.", id=another)
    world.come_to_rest()
    return ana, id, another


def bundle_of(world: World, id: str) -> Bundle:
    [(key,)] = world.server.rows(f"SELECT key FROM memory WHERE id = '{id}'")
    with world.server.trivet.engine.store.feed.transaction() as connection:
        return read_bundles(connection, [key])[key]


def test_own_memory_takes_id_of_others_memory(folder: Path, team: dict[str, Path]) -> None:
    """The server lost Bo's shared memory, and another of Ana's machines then took its id."""
    with history(folder, team) as world:
        id, (first, second, bos) = SHARED_IDS[0], world.laptops[:3]
        world.server.back_up()
        bos.trivet.remember(f"{world.word('bo', id)} was said.", id=id)
        bos.trivet.share(id=id, user="ana", permission="read")
        for laptop in (bos, bos, first, first):
            world.exchange(laptop)
        world.put_server_back(0)
        second.trivet.remember(f"{world.word('ana', id)} was said.", id=id)
        for laptop in (second, second, first, first):
            world.exchange(laptop)
        world.come_to_rest()
        check_at_rest(world)
        assert first.rows(f"SELECT owner FROM memory WHERE id = '{id}'") == [("local",)]


def test_sensitive_text_survives_id_change(folder: Path, team: dict[str, Path]) -> None:
    """The laptop got its memory under another id and left before learning that both match."""
    with history(folder, team) as world:
        id, first = SHARED_IDS[0], world.laptops[0]
        world.server.trivet.acting_as(caller("bo")).remember(
            f"{world.word('bo', id)} was said.", id=id
        )
        first.trivet.remember(f"{world.word('ana', id)} was said.", id=id)
        place, ops = first.laptop.ask(100)
        world.answer(Request(first, place, list(ops), 100))  # the response is lost
        level(world, first)
        assert (reassigned_id(id, "ana"),) in first.rows("SELECT id FROM memory")
        first.trivet.edit(id, content="hidden words", sensitive=True)
        world.leave_and_join(first)
        world.come_to_rest()
        assert "hidden words" in words_on(first)
        assert "hidden words" not in words_on_server(world)
