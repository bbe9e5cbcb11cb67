"""A store joins, follows and leaves a server without losing data."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from support.store_fixtures import Opened
from trivet import Conflict
from trivet.common.ids import reassigned_id
from trivet.sync.laptop import Laptop, join, leave
from trivet.sync.messages import OtherEpoch, Page, Place

MADE = str(uuid.uuid5(uuid.NAMESPACE_URL, "a file of a vault"))
TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def test_join_reassigns_name_based_ids(open_trivet: Opened, path: Path) -> None:
    before = open_trivet(secrets_keyring=False)
    before.remember(f"The token is {TOKEN}.", id=MADE)
    before.edit(MADE, title="Token")
    other = before.remember("It is used by the robot.").id
    before.link(other, "see-also", MADE)
    join(before.engine, "http://server", "ana")
    after = open_trivet(secrets_keyring=False)
    renamed = reassigned_id(MADE, "ana")
    assert {one.id for one in after.list().memories} == {renamed, other}
    assert TOKEN in after.reveal(renamed).content
    assert [one.memory.id for one in after.history(renamed)] == [renamed, renamed]
    assert [one.target for one in after.links(other)] == [renamed]
    assert after.recall("token").hits[0].id == renamed


def test_outbox_reads_content_at_send_time(open_trivet: Opened) -> None:
    with open_trivet() as before:
        join(before.engine, "http://server", "ana")
    trivet = open_trivet()
    id = trivet.remember("first words").id
    laptop = Laptop(trivet.engine)
    assert [op.fields.get("content") for op in laptop.ask(10)[1]] == ["first words"]
    trivet.edit(id, title="A title")
    sent = laptop.ask(10)[1]
    assert [(op.kind, sorted(op.fields) if op.kind == "edit" else "") for op in sent] == [
        ("create", ""),
        ("edit", ["title"]),
    ]
    trivet.purge(id)
    assert [op.kind for op in laptop.ask(10)[1]] == ["purge"]


def test_long_absent_laptop_does_full_pull(open_trivet: Opened) -> None:
    with open_trivet() as before:
        join(before.engine, "http://server", "ana")
    laptop = Laptop(open_trivet().engine)
    place = laptop.ask(0)[0]
    far = Place(epoch="e", seq=9, top=9, mark="m")
    laptop.receive(place, Page(start=0, place=far, more=False, items=()))
    assert laptop.ask(0)[0] == far
    laptop.receive(far, OtherEpoch(epoch="e", again=True))
    assert laptop.ask(0)[0] == Place(epoch="e", seq=0, top=9, mark="m", full=True)


def test_store_follows_one_server_until_it_leaves(open_trivet: Opened) -> None:
    trivet = open_trivet()
    join(trivet.engine, "http://server", "ana")
    assert join(trivet.engine, "http://server", "ana").user == "ana"
    with pytest.raises(Conflict, match="sync leave"):
        join(trivet.engine, "http://another", "ana")
    with pytest.raises(Conflict, match="follows a server itself"):
        trivet.engine.store.feed.state()
    leave(trivet.engine)
    assert not open_trivet().engine.follows
