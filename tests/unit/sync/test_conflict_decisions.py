"""Sensitivity, conflict and scope decisions made on a laptop take effect everywhere."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from soak.syncing.check import words_on_server
from soak.syncing.machines import LaptopMachine, caller
from soak.syncing.people import SENSITIVE, SHARED_IDS
from soak.syncing.world import LEVEL, World
from support.scripted_history import clash, history, level
from trivet.common.ids import new_id
from trivet.settings import Settings
from trivet.sync.laptop import Laptop, join, leave
from trivet.sync.verbs import drop_key, keep_key, key_for, record_use


def allowing(laptop: LaptopMachine, allowed: bool) -> Laptop:
    engine = laptop.trivet.engine
    return Laptop(
        msgspec.structs.replace(
            engine, settings=msgspec.structs.replace(engine.settings, sync_sensitive=allowed)
        )
    )


def test_pending_sensitive_text_is_withdrawn(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        id = first.trivet.remember("plain was said.").id
        leave(first.trivet.engine)
        join(first.trivet.engine, "http://server", "ana", sensitive=True)
        first.trivet.remember(f"never {SENSITIVE}", sensitive=True)
        first.trivet.edit(id, sensitive=True)
        first.trivet.edit(id, content=f"hidden {SENSITIVE}")
        assert SENSITIVE in str(allowing(first, True).ask(50))
        place, ops = allowing(first, False).ask(50)
        assert not place.sensitive
        assert SENSITIVE not in str(ops)
        world.come_to_rest()
        assert len(first.rows(f"SELECT 1 FROM memory WHERE content LIKE '%{SENSITIVE}%'")) == 2
        assert not first.rows("SELECT reason FROM parked")


def test_taken_edit_does_not_restore_removed_tag(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        id = first.trivet.remember("plain was said.", tags=["shared"]).id
        world.come_to_rest()
        first.trivet.edit(id, tags=["private"])
        clash(world, id)
        [conflict] = first.trivet.sync_conflicts()
        first.trivet.sync_resolve(id, take=conflict.rev)
        world.come_to_rest()
        memory = world.server.trivet.get(id)
        assert (memory.content, memory.tags) == ("second says", ("private",))


def test_conflict_is_settled_only_by_decision(folder: Path, team: dict[str, Path]) -> None:
    """The laptop may be lost after it restored the memory but before it sent its decision."""
    with history(folder, team) as world:
        first = world.laptops[0]
        id = first.trivet.remember("plain was said.").id
        world.come_to_rest()
        world.server.back_up()
        clash(world, id)
        world.put_server_back()
        first.trivet.sync_resolve(id, take="head")
        level(world, first)
        world.exchange(first, most=1)
        assert world.server.rows("SELECT waiting FROM branch") == [(1,)]
        world.exchange(first)
        assert world.server.rows("SELECT waiting FROM branch") == [(0,)]


def test_conflicting_edit_of_sensitive_memory_is_masked(
    folder: Path, team: dict[str, Path]
) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        id = first.trivet.remember("plain was said.").id
        world.come_to_rest()
        clash(world, id)
        first.trivet.edit(id, sensitive=True)
        [kept], [shown] = first.trivet.sync_conflicts(), first.trivet.sync_conflicts(reveal=True)
        assert (kept.masked, shown.masked) == (True, False)
        assert "says" not in str(kept)
        assert shown.branch["content"] == "second says"
        assert first.trivet.acting_as(caller("eve")).sync_conflicts() == ()


def test_memory_dropped_by_scope_is_not_purged(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        id = first.trivet.remember("of a file", id=new_id()).id
        world.come_to_rest()
        with first.trivet.engine.store.feed.transaction() as connection:
            connection.execute("INSERT INTO vault (name, root, options) VALUES ('v', '/v', '{}')")
            values = {
                "vault": "v",
                "id": id,
                "path": "a.md",
                "place": "",
                "content": "c",
                "said": "s",
                "about": "{}",
            }
            connection.execute(connection.sql("vaults")["put_part"], values)
        join(first.trivet.engine, "http://server", "ana", scopes=("work",))
        world.come_to_rest()
        assert not first.rows(f"SELECT 1 FROM memory WHERE id = '{id}'")
        assert first.rows("SELECT said FROM vault_part") == [("s",)]


def test_sync_key_stays_while_another_store_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_CONFIG", str(tmp_path / "config.toml"))
    stores = [tmp_path / name for name in ("one.db", "two.db")]
    keep_key("http://server", "ana", "secret")
    for store in stores:
        store.touch()
        record_use("http://server", "ana", str(store))
    drop_key("http://server", "ana", str(stores[0]))
    assert key_for(Settings(), "http://server", "ana") == "secret"
    drop_key("http://server", "ana", str(stores[1]))
    assert "secret" not in (tmp_path / "sync-keys.json").read_text()


def test_rejoining_creates_no_duplicates(folder: Path, team: dict[str, Path]) -> None:
    """The first join reassigns the name-based id; the second must not reassign it again."""
    with history(folder, team) as world:
        first = world.laptops[0]
        leave(first.trivet.engine)
        first.trivet.remember("of a file", id=SHARED_IDS[0])
        for _ in range(2):
            join(first.trivet.engine, "http://server", "ana")
            world.come_to_rest()
            leave(first.trivet.engine)
        assert world.server.rows("SELECT count(*) FROM memory WHERE content = 'of a file'") == [
            (1,)
        ]
        join(first.trivet.engine, "http://server", "ana")


def test_leaving_keeps_text_lost_by_restored_server(folder: Path, team: dict[str, Path]) -> None:
    """The restored server has a new history, and only this laptop holds the text of the old one."""
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        id = first.trivet.remember("plain was said.").id
        world.come_to_rest()
        world.server.back_up()
        first.trivet.edit(id, content="lost words")
        level_by_sending(world, first)
        world.put_server_back()
        second.trivet.edit(id, content="second says")
        level_by_sending(world, second)
        level(world, first)
        assert "lost words" in str(first.rows("SELECT bundle FROM carried"))
        leave(first.trivet.engine)
        join(first.trivet.engine, "http://server", "ana")
        world.come_to_rest()
        assert "lost words" in words_on_server(world) + str(first.rows("SELECT body FROM parked"))


def level_by_sending(world: World, laptop: LaptopMachine) -> None:
    for _ in range(LEVEL):
        world.exchange(laptop)
