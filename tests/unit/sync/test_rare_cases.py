"""Sync cases that random histories do not reach: sensitivity changes, long absences and leaving."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from soak.syncing.check import check_same, words_on, words_on_server
from soak.syncing.machines import caller
from soak.syncing.people import RAW, SHARED_IDS
from soak.syncing.team import Request
from support.scripted_history import history, level
from trivet.common.ids import new_id
from trivet.secrets.masking import MASK
from trivet.store.records import ShareRecord
from trivet.store.relational.tables.sync_bundles import read_bundles
from trivet.sync import server as server_side
from trivet.sync.laptop import join, leave
from trivet.sync.messages import Acks, Op, Page, Place
from trivet.types import Caller


def test_no_longer_sensitive_memory_syncs_again(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        id = first.trivet.remember("plain was said.").id
        world.come_to_rest()
        first.trivet.edit(id, sensitive=True)
        world.come_to_rest()
        first.trivet.edit(id, content="hidden words")
        world.come_to_rest()
        first.trivet.edit(id, sensitive=False)
        world.come_to_rest()
        assert second.rows(f"SELECT content, sensitive FROM memory WHERE id = '{id}'") == [
            ("hidden words", 0)
        ]


def test_pull_keeps_sensitive_text_unknown_to_server(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        id = first.trivet.remember("plain was said.").id
        world.come_to_rest()
        second.trivet.edit(id, title="a title")
        for _ in range(3):
            world.exchange(second)
        first.trivet.edit(id, sensitive=True)
        first.trivet.edit(id, content="hidden words")
        level(world, first)
        assert first.rows(f"SELECT content, sensitive FROM memory WHERE id = '{id}'") == [
            ("hidden words", 1)
        ]


def test_sensitivity_survives_server_restore(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first, _, others = world.laptops[:3]
        id = first.trivet.remember("plain was said.").id
        first.trivet.share(id=id, user="bo", permission="read")
        world.come_to_rest()
        world.server.back_up()
        first.trivet.edit(id, sensitive=True)
        first.trivet.edit(id, content="hidden words")
        world.come_to_rest()
        assert not others.rows(f"SELECT 1 FROM memory WHERE id = '{id}'")
        world.put_server_back()
        world.come_to_rest()
        assert first.rows(f"SELECT content, sensitive FROM memory WHERE id = '{id}'") == [
            ("hidden words", 1)
        ]
        assert not others.rows(f"SELECT 1 FROM memory WHERE id = '{id}'")


def test_sensitive_text_is_kept_when_flag_is_cleared_elsewhere(
    folder: Path, team: dict[str, Path]
) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        id = first.trivet.remember("plain was said.").id
        world.come_to_rest()
        first.trivet.edit(id, sensitive=True)
        first.trivet.edit(id, content="hidden words")
        world.come_to_rest()
        world.server.trivet.acting_as(caller("ana")).edit(id, sensitive=False)
        world.come_to_rest()
        held = "".join(
            str(row)
            for row in first.rows("SELECT snapshot FROM revision")
            + first.rows("SELECT body FROM parked")
        )
        assert "hidden words" in held
        assert "hidden words" not in words_on_server(world)
        [kept], [shown] = first.trivet.sync_refused(), first.trivet.sync_refused(reveal=True)
        assert (kept.said["content"], kept.masked) == (MASK, True)
        assert (shown.said["content"], shown.masked) == ("hidden words", False)
        assert first.trivet.acting_as(caller("eve")).sync_refused() == ()


def test_conflict_from_before_sensitivity_is_restored(folder: Path, team: dict[str, Path]) -> None:
    """Two machines created a memory with one id.

    The server stored the second text as a branch but did not report it.
    """
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        second.trivet.remember("second said.", id=SHARED_IDS[0])
        world.exchange(second)
        world.server.back_up()
        first.trivet.remember("first said.", id=SHARED_IDS[0])
        level(world, first)
        [id] = [
            row[0] for row in first.rows("SELECT id FROM memory WHERE content = 'second said.'")
        ]
        first.trivet.edit(id, content="a private matter", sensitive=True)
        for _ in range(3):
            world.exchange(first)
        assert "first said." in words_on_server(world)
        for _ in range(2):
            world.put_server_back()
            level(world, first)
        world.come_to_rest()
        assert "first said." in words_on_server(world)


def test_full_pull_passes_forgotten_entries(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        ids = [first.trivet.remember(f"{n} was said.").id for n in range(4)]
        first.trivet.share(id=ids[0], user="bo", permission="read")
        world.come_to_rest()
        first.trivet.unshare(id=ids[0], user="bo")
        world.come_to_rest()
        world.server.year = 2028
        first.trivet.remember("later was said.")
        world.come_to_rest()
        engine = world.server.trivet.engine.acting_as(caller("ana"))
        state = engine.store.feed.state()
        assert state is not None
        assert state.horizon > 0
        leave(first.trivet.engine)
        join(first.trivet.engine, "http://server", "ana")
        for _ in range(60):
            place, ops = first.laptop.ask(50)
            answer = world.answer(Request(first, place, list(ops), 2))
            first.laptop.receive(place, answer)
            if isinstance(answer, Page) and not answer.more:
                return
        raise AssertionError("it never ends")


def test_push_during_full_pull_misses_no_revocation(folder: Path, team: dict[str, Path]) -> None:
    """A received memory is revoked, and two years later the server no longer knows of that."""
    with history(folder, team) as world:
        first, others = world.laptops[0], world.laptops[2]
        ids = [first.trivet.remember(f"{n} was said.").id for n in range(4)]
        for id in ids:
            first.trivet.share(id=id, user="bo", permission="read")
        world.come_to_rest()
        world.leave_and_join(others)
        page = world.answer(Request(others, others.laptop.ask(0)[0], [], 6))
        others.laptop.receive(others.laptop.ask(0)[0], page)
        assert others.rows("SELECT 1 FROM replica WHERE access = 'read'")
        for id in ids:
            first.trivet.unshare(id=id, user="bo")
        world.exchange(first)
        world.server.year = 2028
        world.exchange(others)
        world.come_to_rest()
        check_same(world, others)


@pytest.mark.parametrize("where", ["laptop", "server"])
def test_redaction_leaves_no_bytes(where: str, folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        world.leave_raw()
        for n in (0, 2):
            laptop = world.laptops[n]
            if where == "laptop":
                world.redact(
                    laptop.trivet,
                    laptop.user,
                    list(laptop.trivet.engine.store.memories.everything()),
                )
            else:
                t = world.server.trivet.acting_as(caller(laptop.user))
                world.redact(t, laptop.user, list(t.engine.store.memories.everything()))
        world.come_to_rest()
        for machine in (world.server, *world.laptops):
            machine.reopen()
            machine.trivet.engine.store.upkeep.finish_erasing(of_any_size=True)
            assert RAW.encode() not in machine.bytes(), machine.name


def test_key_without_share_right_cannot_share_by_healing(
    folder: Path, team: dict[str, Path]
) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        id = first.trivet.remember("was said.").id
        world.come_to_rest()
        served = world.server.trivet.engine.store.feed.database
        key = world.server.rows(f"SELECT key FROM memory WHERE id = '{id}'")[0][0]
        bundle = read_bundles(served.read(), [key])[key]
        bundle = msgspec.structs.replace(
            bundle, shares=(ShareRecord(grantee="bo", permission="write"),), seq=10**6
        )
        who = Caller(
            tenant="default",
            user="ana",
            role="writer",
            key="k",
            rights=frozenset({"read", "write"}),
        )
        engine = world.server.trivet.engine.acting_as(who)
        op = Op(op=new_id(), kind="heal", id=id, bundle=bundle)
        server_side.push(engine, Place(), [op])
        assert not world.server.rows(f"SELECT 1 FROM share WHERE memory = {key}")


def test_leaving_keeps_unsent_branch(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        id = SHARED_IDS[0]
        second.trivet.remember("second said", id=id)
        for _ in range(3):
            world.exchange(second)
        first.trivet.remember("first said", id=id)
        level(world, first)
        assert first.rows("SELECT waiting FROM branch") == [(2,)]
        leave(first.trivet.engine)
        join(first.trivet.engine, "http://server", "ana")
        world.come_to_rest()
        assert "first said" in words_on_server(world) + str(first.rows("SELECT body FROM parked"))


def test_rejoining_keeps_losing_edit_of_lost_conflict(folder: Path, team: dict[str, Path]) -> None:
    """The server lost the settled conflict, and the laptop left before it could heal the server."""
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        world.server.back_up()
        for laptop, words in ((second, "second said"), (first, "first said")):
            laptop.trivet.remember(words, id=SHARED_IDS[0])
            for _ in range(3):
                world.exchange(laptop)
        first.trivet.sync_resolve(SHARED_IDS[0], take="head")
        world.exchange(first)
        world.put_server_back(0)
        world.leave_and_join(first)
        for _ in range(3):
            world.exchange(first)
        assert "second said" in words_on_server(world)
        assert "first said" in str(first.rows("SELECT body FROM parked"))


def test_unused_tag_stays_unshared(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first = world.laptops[0]
        first.trivet.share(tag="secretteam", user="bo", permission="read")
        world.come_to_rest()
        world.server.back_up()
        first.trivet.unshare(tag="secretteam", user="bo")
        world.come_to_rest()
        world.put_server_back()
        world.come_to_rest()
        assert not world.server.rows("SELECT 1 FROM tag_share WHERE tag = 'secretteam'")


def test_operation_after_deferred_one_is_deferred(folder: Path, team: dict[str, Path]) -> None:
    """Its create was rolled back under a reassigned id, so the edit must not be refused or lost."""
    with history(folder, team) as world:
        when = "BEFORE INSERT ON memory WHEN NEW.content LIKE '%poison%'"
        with world.server.trivet.engine.store.feed.transaction() as connection:
            connection.execute(f"CREATE TRIGGER full {when} BEGIN SELECT RAISE(ABORT, 'full'); END")
        world.server.trivet.acting_as(caller("bo")).remember("bo said", id=SHARED_IDS[0])
        first = world.laptops[0]
        first.trivet.remember("poison", id=SHARED_IDS[0])
        first.trivet.edit(SHARED_IDS[0], content="harmless words")
        first.trivet.remember("another was said.")
        place, ops = first.laptop.ask(50)
        answer = server_side.push(world.server.trivet.engine.acting_as(caller("ana")), place, ops)
        assert isinstance(answer, Acks)
        assert [ack.result for ack in answer.acks] == ["later", "later", "applied"]
        first.laptop.receive(place, answer)
        with world.server.trivet.engine.store.feed.transaction() as connection:
            connection.execute("DROP TRIGGER full")
        world.come_to_rest()
        assert "harmless words" in words_on_server(world)
        assert not first.rows("SELECT 1 FROM parked")


def test_memory_made_sensitive_elsewhere_stays_and_returns(
    folder: Path, team: dict[str, Path]
) -> None:
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        id = first.trivet.remember("plain was said.").id
        world.come_to_rest()
        second.trivet.edit(id, sensitive=True)
        world.come_to_rest()
        assert first.rows(f"SELECT content, sensitive FROM memory WHERE id = '{id}'") == [
            ("plain was said.", 1)
        ]
        first.trivet.edit(id, content="hidden words")
        world.come_to_rest()
        assert "hidden words" not in words_on_server(world)
        first.trivet.edit(id, sensitive=False)
        world.come_to_rest()
        assert second.rows(f"SELECT content, sensitive FROM memory WHERE id = '{id}'") == [
            ("hidden words", 0)
        ]
        assert not first.rows("SELECT 1 FROM parked")


def test_text_from_before_sensitivity_survives_server_loss(
    folder: Path, team: dict[str, Path]
) -> None:
    """The server never sent this laptop the sensitive memory, and another laptop reused its id."""
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        world.server.back_up()
        first.trivet.remember("early words", id=SHARED_IDS[0])
        first.trivet.edit(SHARED_IDS[0], content="hidden words", sensitive=True)
        world.come_to_rest()
        world.put_server_back()
        second.trivet.remember("other words", id=SHARED_IDS[0])
        world.exchange(second)
        world.exchange(second)
        world.come_to_rest()
        here = words_on_server(world) + words_on(first)
        assert "early words" in here
        assert "hidden words" in words_on(first)


def test_edit_sent_by_clone_does_not_block_sync(folder: Path, team: dict[str, Path]) -> None:
    """The clone sent the edit, which is still pending on this laptop; then the server loses it."""
    with history(folder, team) as world:
        first = world.laptops[0]
        id = first.trivet.remember("plain was said.").id
        world.come_to_rest()
        world.server.back_up()
        first.trivet.edit(id, content="sent by the clone")
        first.laptop.ask(0)  # prepare the edit, so that both disks have it pending
        clone = first.cloned("clone")
        world.laptops.append(clone)
        world.exchange(clone)
        first.trivet.edit(id, content="hidden words", sensitive=True)
        level(world, first)
        world.put_server_back()
        level(world, first)
        world.come_to_rest()
        assert first.rows("SELECT * FROM outbox") == []
        assert "hidden words" in words_on(first)
        assert "sent by the clone" in words_on_server(world)


def test_dropped_memory_leaves_its_sensitive_text(folder: Path, team: dict[str, Path]) -> None:
    with history(folder, team) as world:
        first, second = world.laptops[:2]
        id = first.trivet.remember("plain was said.").id
        world.come_to_rest()
        second.trivet.edit(id, content="said elsewhere")
        world.exchange(second)
        leave(first.trivet.engine)
        join(first.trivet.engine, "http://server", first.user, scopes=("work",))
        first.trivet.edit(id, content="hidden words", sensitive=True)
        first.trivet.edit(id, content="plain again", sensitive=False)
        world.come_to_rest()
        assert first.rows(f"SELECT 1 FROM memory WHERE id = '{id}'") == []
        assert "hidden words" in words_on(first)
        assert "hidden words" not in words_on_server(world)
