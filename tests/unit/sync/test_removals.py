"""Revoked shares and removed links stay removed, for sensitive memories and after rejoining."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.syncing.check import check_at_rest
from soak.syncing.machines import LaptopMachine
from soak.syncing.world import World
from support.scripted_history import history
from trivet.sync.laptop import join, leave


def hidden(world: World, laptop: LaptopMachine) -> str:
    """Share a memory with Bo, then make it sensitive before the server responded."""
    id = laptop.trivet.remember("plain was said.").id
    laptop.trivet.share(id=id, user="bo", permission="read")
    laptop.laptop.ask(50)
    laptop.trivet.edit(id, content="a private matter", sensitive=True)
    world.come_to_rest()
    assert shared_there(world, id) == ["bo"]
    return id


def shared_there(world: World, id: str) -> list[str]:
    return [row[0] for row in world.server.rows(
        f"SELECT s.grantee FROM share AS s JOIN memory AS m ON m.key = s.memory WHERE m.id = '{id}'"
    )]  # fmt: skip


@pytest.mark.parametrize("is_put_back", [False, True])
@pytest.mark.parametrize("was_sent", [False, True])
def test_revoked_share_ends_on_server(
    is_put_back: bool, was_sent: bool, folder: Path, team: dict[str, Path]
) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        id = hidden(world, first)
        world.server.back_up()
        first.trivet.unshare(id=id, user="bo")
        if was_sent:
            world.come_to_rest()
        if is_put_back:
            world.put_server_back()
        world.come_to_rest()
        assert shared_there(world, id) == []
        check_at_rest(world)


def test_unshare_after_rejoining_reaches_server(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        id = hidden(world, first)
        world.leave_and_join(first)
        world.come_to_rest()
        first.trivet.unshare(id=id, user="bo")
        world.come_to_rest()
        assert shared_there(world, id) == []


@pytest.mark.parametrize("by_tag", [False, True])
def test_unshare_before_leaving_applies_on_rejoining(
    by_tag: bool, folder: Path, team: dict[str, Path]
) -> None:
    with history(folder, team) as world:
        first, _, others = world.laptops[:3]
        id = first.trivet.remember("plain was said.", tags=["ours"]).id
        what = {"tag": "ours"} if by_tag else {"id": id}
        first.trivet.share(**what, user="bo", permission="read")
        world.come_to_rest()
        assert others.rows(f"SELECT 1 FROM memory WHERE id = '{id}'")
        first.trivet.unshare(**what, user="bo")
        leave(first.trivet.engine)
        join(first.trivet.engine, "http://server", first.user)
        world.come_to_rest()
        assert not others.rows(f"SELECT 1 FROM memory WHERE id = '{id}'")
        check_at_rest(world)


def test_unlink_before_leaving_applies_on_rejoining(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        ids = [first.trivet.remember(f"{word} was said.").id for word in ("plain", "more")]
        first.trivet.link(ids[0], "see-also", ids[1])
        world.come_to_rest()
        before = len(second.rows("SELECT 1 FROM link"))
        first.trivet.unlink(ids[0], "see-also", ids[1])
        leave(first.trivet.engine)
        join(first.trivet.engine, "http://server", first.user)
        world.come_to_rest()
        for machine in (world.server, first, second):
            assert len(machine.rows("SELECT 1 FROM link")) == before - 1, machine.name
        check_at_rest(world)


def test_removed_link_does_not_return(folder: Path, team: dict[str, Path]) -> None:
    """Both ends are sensitive; otherwise the other end would report the link."""
    with history(folder, team) as world:
        first = world.laptops[0]
        ids = [first.trivet.remember(f"{word} was said.").id for word in ("plain", "more")]
        first.trivet.link(ids[0], "see-also", ids[1])
        first.laptop.ask(50)
        for id in ids:
            first.trivet.edit(id, content="a private matter", sensitive=True)
        world.come_to_rest()
        before = len(first.rows("SELECT 1 FROM link"))
        first.trivet.unlink(ids[0], "see-also", ids[1])
        world.come_to_rest()
        for id in ids:
            first.trivet.edit(id, content="said to all", sensitive=False)
        world.come_to_rest()
        for machine in (world.server, first):
            assert len(machine.rows("SELECT 1 FROM link")) == before - 1, machine.name
