"""A memory that a user's machines know by several ids: it is the one that its first revision begins (soak/syncing)."""

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
from support.told_history import history, level
from trivet import Trivet
from trivet.common.ids import new_id
from trivet.store.records import Bundle
from trivet.store.relational.tables.sync_bundles import read_bundles
from trivet.sync import server as server_side
from trivet.sync.core import reassigned_id
from trivet.sync.laptop import join, leave
from trivet.sync.messages import Acks, Op, Place

IDS = (SHARED_IDS[0], "01890a5d-ac96-774b-bcce-b302099a8057")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("id", IDS)
def test_two_names_of_one_memory_are_one_memory(
    id: str, order: tuple[int, int], folder: Path, team: dict[str, Path]
) -> None:
    """In one life of the server its id was another user's, so that one of two laptops knows it by another name."""
    with history(folder, team) as world:
        known_by_two_names(world, id)
        world.put_server_back(0)
        for place in order * 2:
            world.exchange(world.laptops[place])
        world.come_to_rest()
        check_at_rest(world)
        assert len(world.server.rows("SELECT 1 FROM memory")) == len(world.words)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_names_of_one_memory_are_one_memory_for_machines_that_join_again(
    order: tuple[int, int], folder: Path, team: dict[str, Path]
) -> None:
    """Each creates what it has anew, under the name by which it knows it."""
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
def test_a_purge_under_one_name_is_one_under_the_other(
    id: str, purging: int, order: tuple[int, int], folder: Path, team: dict[str, Path]
) -> None:
    """Whichever of the two laptops purges it, and whichever comes first when the server was put back."""
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
        world.put_server_back(0)  # it is not forgotten either which names it had
        world.come_to_rest()
        assert word not in words_on_server(world)


@pytest.mark.parametrize("brought_first", [True, False])
def test_a_purge_under_one_name_is_one_under_the_other_though_the_first_was_given_again(
    brought_first: bool, folder: Path, team: dict[str, Path]
) -> None:
    """The same file was read once more, on the server: another memory has the id that the first laptop knows."""
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
def test_two_memories_that_were_one_in_a_life_of_the_server_are_two_again(
    purged: bool, folder: Path, team: dict[str, Path]
) -> None:
    """The second of one id lay beside the first, as both had to get another one. Each stands once, or is purged."""
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
        laptop.laptop.ask(1)  # its revision has a name before it is copied
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
def test_what_waits_under_one_name_is_sent_under_the_other(
    told_first: bool, folder: Path, team: dict[str, Path]
) -> None:
    """An edit, feedback and a link. The laptop may have been told the memory under its other name before."""
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
def test_words_of_another_are_brought_back_under_the_name_that_the_memory_has_now(
    named: int, folder: Path, team: dict[str, Path]
) -> None:
    """Bo, who may write it, knows ana's memory by one name, and her laptop has brought it back under the other."""
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
    """Ana's memory has one name on her first laptop and another one on her second. Returns its word."""
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


def test_what_is_brought_under_the_name_of_another_memory_goes_to_its_own(
    folder: Path, team: dict[str, Path]
) -> None:
    """In one life of the server the second lay beside the first, which had its name; now each has a name of its own."""
    with history(folder, team) as world:
        ana, id, another = two_that_were_one(world)
        first, second = (bundle_of(world, name) for name in (id, another))
        beside = msgspec.structs.replace(second.head, number=0)
        both = msgspec.structs.replace(first, id=another, branches=(beside,), waiting=(beside.rev,))
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
def test_what_lies_beside_a_memory_does_not_come_to_lie_beside_another(
    kind: Literal["create", "heal"], folder: Path, team: dict[str, Path]
) -> None:
    """Two machines made a memory of one id; each of the two ids that it had in lives of the server is another's now."""
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
    """Ana's memories of both ids that one of her vault's can have."""
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


def test_ones_own_memory_takes_the_id_under_which_anothers_is_here(
    folder: Path, team: dict[str, Path]
) -> None:
    """Bo had shared his; then the server was put back to before that, and another of ana's machines came first."""
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


def test_words_of_a_sensitive_memory_outlive_its_second_name(
    folder: Path, team: dict[str, Path]
) -> None:
    """The laptop was told its memory under another id, not that it is the same, and left before it could hear that."""
    with history(folder, team) as world:
        id, first = SHARED_IDS[0], world.laptops[0]
        world.server.trivet.acting_as(caller("bo")).remember(
            f"{world.word('bo', id)} was said.", id=id
        )
        first.trivet.remember(f"{world.word('ana', id)} was said.", id=id)
        place, ops = first.laptop.ask(100)
        world.answer(Request(first, place, list(ops), 100))  # and the answer is lost
        level(world, first)
        assert (reassigned_id(id, "ana"),) in first.rows("SELECT id FROM memory")
        first.trivet.edit(id, content="hidden words", sensitive=True)
        world.leave_and_join(first)
        world.come_to_rest()
        assert "hidden words" in words_on(first)
        assert "hidden words" not in words_on_server(world)
