"""Laptops that follow a real server on SQLite and PostgreSQL get what users are promised."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from support.http_server import Served, served, settings_for
from support.waiting import happened
from support.word_embedder import WordEmbedder
from trivet import Forbidden, NotFound, StoreError, Trivet
from trivet.common.clock import clock_fixed_at
from trivet.common.ids import new_id
from trivet.memory.passages import PASSAGE_VERSION
from trivet.serve.resident.sync_worker import SyncWorker
from trivet.store.records import Passage
from trivet.store.relational.tables.sync_feed import ServerState
from trivet.sync import verbs
from trivet.sync.laptop import join
from trivet.types import Memory

Laptop = Callable[..., Trivet]


ON_BOTH = pytest.mark.parametrize("server", ["postgres", "sqlite"], indirect=True)


@pytest.fixture
def embedder() -> Iterator[WordEmbedder]:
    made = WordEmbedder()
    yield made
    made.stop()


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    if getattr(request, "param", "sqlite") == "sqlite":
        with served(settings_for(tmp_path / "server.db", changes="words")) as running:
            yield running
        return
    postgres = request.getfixturevalue("postgres")
    url = postgres.database()
    try:
        with served(settings_for(url, changes="words")) as running:
            yield running
    finally:
        postgres.drop(url)


@pytest.fixture
def laptop(server: Served, tmp_path: Path) -> Iterator[Laptop]:
    """Open a store that follows the server as the user of the given key."""
    with ExitStack() as stack:

        def joined(
            name: str,
            user: str,
            *contents: str,
            scopes: Sequence[str] | None = None,
            **settings: Any,
        ) -> Trivet:
            path = tmp_path / f"{name}.db"
            usual: dict[str, Any] = {
                "embedder": "none",
                "changes": "words",
                "secrets_keyring": False,
                **settings,
            }
            with Trivet.open(
                path, background=False, key=server.key(user, "writer"), **usual
            ) as before:
                for content in contents:
                    before.remember(content)
                verbs.join(before.engine, server.address, scopes)
            return stack.enter_context(Trivet.open(path, background=False, **usual))

        yield joined


def sync(*laptops: Trivet) -> None:
    for one in laptops:
        verbs.sync_now(one.engine)


def only(trivet: Trivet) -> Memory:
    [memory] = trivet.list().memories
    return memory


def found(trivet: Trivet, word: str) -> list[str]:
    return [hit.id for hit in trivet.recall(word).hits]


@ON_BOTH
def test_team_works_offline_and_loses_nothing(laptop: Laptop, server: Served) -> None:
    ana, second, bo = (
        laptop("a", "ana", "The office is in Rostock."),
        laptop("s", "ana"),
        laptop("b", "bo"),
    )
    id = only(ana).id
    sync(ana, second, bo)
    assert only(second).content == "The office is in Rostock."
    assert bo.list().total == 0
    ana.share(id=id, user="bo", permission="write")
    sync(ana, bo)
    assert found(bo, "Rostock") == [id]
    # Both edit the same words before either syncs.
    bo.edit(id, content="The office is in Kiel.")
    ana.edit(id, content="The office is in Bremen.")
    sync(ana, bo, ana, second)
    for one in (ana, second, bo):
        assert only(one).content == "The office is in Bremen."
        [hit] = one.recall("Kiel").hits
        assert hit.why.conflicts
        [clash] = one.sync_conflicts()
        assert (clash.author, dict(clash.branch)) == ("bo", {"content": "The office is in Kiel."})
        assert verbs.status(one.engine).conflicts == 1
    ana.sync_resolve(id, take=clash.rev[:13])
    sync(ana, bo, second)
    for one in (ana, second, bo):
        assert (only(one).content, one.sync_conflicts()) == ("The office is in Kiel.", ())
        assert verbs.verify(one.engine).level
    # The next conflict is resolved on the server by a user with the right to; others hear nothing
    # of it.
    bo.edit(id, content="The office is in Lund.")
    ana.edit(id, content="The office is in Oslo.")
    sync(ana, bo)
    writer = server.client("bo", "writer")
    [clash] = writer.done("GET", f"/v1/sync/conflicts?id={id}")
    assert (clash["head"], clash["branch"]) == (
        {"content": "The office is in Oslo."},
        {"content": "The office is in Lund."},
    )
    assert "+The office is in Lund." in clash["diff"]
    stranger = server.client("eve", "writer")
    assert stranger.done("GET", "/v1/sync/conflicts") == []
    stranger.refused(404, "POST", f"/v1/sync/conflicts/{id}", json={"take": clash["rev"]})
    answer = writer.done(
        "POST", f"/v1/sync/conflicts/{id}", json={"content": "The office is in Malmö."}
    )
    assert answer["content"] == "The office is in Malmö."
    writer.refused(404, "POST", f"/v1/sync/conflicts/{id}", json={})
    sync(ana, bo, second)
    for one in (ana, second, bo):
        assert (only(one).content, one.sync_conflicts(), found(one, "Lund")) == (
            "The office is in Malmö.",
            (),
            [],
        )
        assert verbs.verify(one.engine).level
    # A purged memory is gone everywhere.
    second.purge(id)
    sync(second, ana, bo)
    assert [one.list().total for one in (ana, second, bo)] == [0, 0, 0]
    with pytest.raises(NotFound):
        bo.get(id)


@ON_BOTH
def test_roles_apply_offline_and_refused_edits_are_kept(laptop: Laptop) -> None:
    ana, bo = laptop("a", "ana", "The code is on the door."), laptop("b", "bo")
    id = only(ana).id
    ana.share(id=id, user="bo", permission="write")
    sync(ana, bo)
    with pytest.raises(Forbidden):
        bo.forget(id)
    bo.edit(id, content="The code is under the mat.")
    ana.share(id=id, user="bo", permission="read")
    sync(ana, bo)
    [refused] = bo.sync_refused()
    assert refused.said["content"] == "The code is under the mat."
    assert "read-only" in refused.reason
    assert only(bo).content == "The code is on the door."
    with pytest.raises(Forbidden):
        bo.edit(id, content="again")
    ana.unshare(id=id, user="bo")
    sync(ana, bo)
    assert bo.list().total == 0
    assert found(bo, "door") == []
    assert [one.op for one in bo.sync_refused()] == [refused.op]
    bo.sync_drop(refused.op)
    assert bo.sync_refused() == ()
    with pytest.raises(NotFound):
        bo.sync_drop(refused.op)


def test_sensitive_and_sealed_parts_stay_on_their_machine(laptop: Laptop, server: Served) -> None:
    ana, second = laptop("a", "ana"), laptop("s", "ana")
    ana.remember("The diagnosis is private.", sensitive=True)
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    sealed = ana.remember(f"The token is {token}.").id
    sync(ana, second)
    memory = only(second)
    assert memory.id == sealed
    assert "ghp_" not in memory.content
    assert token in ana.reveal(sealed).content
    assert token not in second.reveal(sealed).content
    assert verbs.status(ana.engine).stays_local == 1


def test_ids_from_names_are_per_user(laptop: Laptop) -> None:
    name = "6ba7b810-9dad-51d1-80b4-00c04fd430c8"
    ana, bo = laptop("a", "ana"), laptop("b", "bo")
    ana.remember("Read by ana.", id=name)
    bo.remember("Read by bo.", id=name)
    sync(ana, bo, ana)
    assert only(ana).id == name
    assert only(bo).content == "Read by bo."
    assert only(bo).id != name
    bo.share(id=only(bo).id, user="ana")
    sync(bo, ana)
    assert ana.list().total == 2


@ON_BOTH
def test_restored_server_gets_everything_again(laptop: Laptop, server: Served) -> None:
    ana, second = laptop("a", "ana", "before the backup"), laptop("s", "ana")
    server.key("bo", "writer")
    ana.feedback(only(ana).id, verdict="useful", query="when was it")
    ana.share(tag="team", user="bo")
    sync(ana, second)
    assert second.usage(only(second).id).useful == 1
    second.feedback(only(second).id, verdict="not-useful", query="when was it")
    ana.unshare(tag="team", user="bo")
    sync(ana, second, ana)
    assert ana.usage(only(ana).id).not_useful == 1
    store = server.house._first_tenant().engine.store
    with store.feed.transaction() as connection:  # as it was before the laptops joined
        known = store.feed.state(connection)
        assert known is not None
        for table in ("numbering", "memory", "feed", "applied"):
            connection.execute(f"DELETE FROM {table}")
        put_back = msgspec.json.encode(ServerState(epoch=known.epoch)).decode()
        connection.execute(
            connection.sql("maintenance")["set_meta"], {"name": "sync", "value": put_back}
        )
    store.seen_by("ana").shares.share_tag("team", "bo", "write")
    sync(ana, second)
    assert store.memories.stats().memories == {"active": 1}
    assert store.seen_by("ana").usage.of(only(second).id).not_useful == 1
    with store.feed.snapshot() as connection:
        # a memory its owner ended stays ended
        assert store.feed.tag_shares(connection, "ana") == ()
    assert only(second).content == "before the backup"
    assert verbs.verify(second.engine).level


def test_laptop_holds_only_chosen_scopes(laptop: Laptop, server: Served) -> None:
    ana, part = laptop("a", "ana"), laptop("p", "ana", scopes=["work"])
    plan = ana.remember("The plan is bold.", scope="work/plans").id
    moved = ana.remember("The budget is thin.", scope="work").id
    other = ana.remember("The garden is wet.").id
    sync(ana, part)
    assert {one.id for one in part.list().memories} == {plan, moved}
    assert (verbs.verify(part.engine).level, verbs.status(part.engine).scopes) == (True, ("work",))
    # Memories written here for another scope go to the server; memories that leave the scope leave
    # the laptop.
    away = part.remember("Milk is needed.").id
    ana.edit(moved, scope="home")
    sync(ana, part, ana)
    assert [one.id for one in part.list().memories] == [plan]
    assert {one.id for one in ana.list().memories} == {plan, moved, other, away}
    assert verbs.verify(part.engine).level
    # It holds everything again once its owner asks for that.
    join(part.engine, server.address, "ana", scopes=[])
    sync(part)
    assert part.list().total == 4
    assert verbs.verify(part.engine).level


def test_unknown_mark_makes_nobody_else_read_again(laptop: Laptop, server: Served) -> None:
    ana, eve = laptop("a", "ana", "hers"), server.client("eve", "writer")
    sync(ana)
    for lie in ({"epoch": None}, {"mark": "never"}, {"epoch": "another", "mark": "never"}):
        state = server.house._first_tenant().engine.store.feed.state()
        assert state is not None
        place = {"epoch": state.epoch, "seq": 1, "top": state.top, "mark": state.mark, **lie}
        assert eve("POST", "/v1/sync/pull", json={"protocol": 1, "place": place}).is_success
        done = verbs.sync_now(ana.engine)
        assert (done.sent, done.received) == (0, 0)
    assert verbs.verify(ana.engine).level


@ON_BOTH
def test_vectors_of_the_same_model_sync_with_readable_memories(
    laptop: Laptop, server: Served, embedder: WordEmbedder
) -> None:
    house = server.house._first_tenant()
    ana, bo = (
        laptop("a", "ana", "The mill grinds.", "The lake is deep."),
        laptop("b", "bo", embedder=embedder.spec()),
    )
    sync(ana)
    ana_memory = ana.list().memories[0]
    ana.share(id=ana_memory.id, user="bo")
    sync(ana)
    model = house.engine.store.vectors.adopt("openai:words", "openai:words", 32)
    for job in house.engine.store.jobs.lease(model, 9, 60):
        vector = np.array([embedder.vector(job.content)], np.float32)
        house.engine.store.jobs.finish(
            [(job, [Passage(0, 0, len(job.content))], vector / np.linalg.norm(vector))]
        )
    assert verbs.sync_now(bo.engine).vectors.taken == 1
    embedded = len(embedder.texts)
    bo.drain()
    assert len(embedder.texts) == embedded
    assert bo.stats().not_embedded == 0
    eve = server.client("eve", "writer")
    wanted = {
        "protocol": 1,
        "identity": "openai:words",
        "preparation": PASSAGE_VERSION,
        "ids": [ana_memory.id],
    }
    assert '"count":0' in eve("POST", "/v1/sync/vectors", json=wanted).text


def test_fields_of_a_newer_version_are_kept(laptop: Laptop, server: Served) -> None:
    newer, old = server.client("ana", "writer"), laptop("o", "ana")
    id, place = new_id(), {"epoch": None}
    fields = {"content": "It rains.", "created_at": "2026-01-01T00:00:00Z", "mood": "grey"}
    ops = [
        {"op": new_id(), "kind": "dream", "id": id, "of": "sheep"},
        {
            "op": new_id(),
            "kind": "create",
            "id": id,
            "rev": new_id(),
            "at": "2026-01-01T00:00:00Z",
            "fields": fields,
            "a": 1,
        },
    ]
    acks = newer.done("POST", "/v1/sync/push", json={"protocol": 1, "place": place, "ops": ops})[
        "acks"
    ]
    assert [ack["result"] for ack in acks] == ["later", "applied"]
    assert "upgrade" in acks[0]["reason"]
    newer.done("PATCH", f"/v1/memories/{id}", json={"title": "Weather"})  # the older server itself
    sync(old)
    old.edit(id, content="It pours.")  # and an older laptop
    sync(old)
    [bundle, _] = newer(
        "POST", "/v1/sync/pull", json={"protocol": 1, "place": place}
    ).text.splitlines()
    head = msgspec.json.decode(bundle)["trunk"][-1]["fields"]
    assert (head["content"], head["title"], head["mood"]) == ("It pours.", "Weather", "grey")


def days_from_now(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def test_memories_of_others_hide_after_long_offline(laptop: Laptop, tmp_path: Path) -> None:
    ana, bo = laptop("a", "ana", "shared for now"), laptop("b", "bo", "my own")
    ana.share(id=only(ana).id, user="bo")
    sync(ana, bo)
    assert bo.list().total == 2
    settings = msgspec.structs.replace(bo.settings, background=False)
    with clock_fixed_at(days_from_now(29)), Trivet.open(settings=settings) as soon:
        assert soon.list().total == 2
    with clock_fixed_at(days_from_now(31)), Trivet.open(settings=settings) as later:
        assert [one.content for one in later.list().memories] == ["my own"]
        assert found(later, "shared") == []
        assert verbs.status(later.engine, ask=False).hidden
        sync(later)
        assert later.list().total == 2


def test_clock_set_back_does_not_delay_hiding(laptop: Laptop) -> None:
    ana, bo = laptop("a", "ana", "shared for now"), laptop("b", "bo")
    ana.share(id=only(ana).id, user="bo")
    sync(ana, bo)
    settings = msgspec.structs.replace(bo.settings, background=False)
    seen = []
    for days in (20, 1, 10, 12):  # 31 of these have passed: 20, none, 9 and 2
        with clock_fixed_at(days_from_now(days)), Trivet.open(settings=settings) as later:
            seen.append(later.list().total)
    assert seen == [1, 1, 1, 0]


def test_resident_process_syncs_by_itself(laptop: Laptop) -> None:
    ana, second = laptop("a", "ana"), laptop("s", "ana")
    arrived = threading.Event()

    @contextmanager
    def using(memory: Trivet) -> Iterator[Trivet]:
        yield memory
        if memory is second and memory.list().total:
            arrived.set()

    threads = [SyncWorker(partial(using, one)) for one in (ana, second)]
    for thread in threads:
        thread.start()
    try:
        ana.remember("It travels at once.")
        happened(arrived)
    finally:
        for thread in threads:
            thread.stop()


def test_version_mismatch_names_what_to_upgrade(server: Served) -> None:
    client = server.client("ana", "writer")
    greeting = client.done("GET", "/v1/sync/hello")
    assert greeting["oldest_protocol"] <= greeting["newest_protocol"]
    for protocol, who in ((0, "laptop"), (999, "server")):
        body = {"protocol": protocol, "place": {}, "limit": 5, "from a newer one": 1}
        assert f"upgrade Trivet on the {who}" in client.refused(
            422, "POST", "/v1/sync/pull", json=body
        )
    client.refused(
        400, "POST", "/v1/sync/push", content=b"{", headers={"Content-Type": "application/json"}
    )


def test_full_disk_on_either_side_loses_nothing(laptop: Laptop, server: Served) -> None:
    ana, second = laptop("a", "ana", "before the disk was full"), laptop("s", "ana")
    sync(ana)
    full = second.engine.store.feed.database.read()
    pages = full.execute("PRAGMA page_count").fetchone()[0]
    for number in range(12):
        ana.remember(f"number {number} " + "with many words " * 300)
    sync(ana)
    full.execute(f"PRAGMA max_page_count = {pages + 5}")
    with pytest.raises(StoreError, match="full"):
        sync(second)
    assert second.list().total < 13
    full.execute("PRAGMA max_page_count = 1000000")
    sync(second)
    assert verbs.verify(second.engine).level
    assert second.list().total == 13


def test_sensitive_memories_sync_where_both_sides_allow_it(
    tmp_path: Path, laptop: Laptop, server: Served
) -> None:
    store = tmp_path / "open.db"
    with served(settings_for(store, changes="words", sync_sensitive=True)) as allows:
        key = allows.key("ana", "writer")
        for name in ("one", "two"):
            with Trivet.open(
                tmp_path / f"{name}.db",
                embedder="none",
                background=False,
                key=key,
                sync_sensitive=True,
            ) as before:
                if name == "one":
                    before.remember("The diagnosis travels.", sensitive=True)
                verbs.join(before.engine, allows.address)
            with Trivet.open(
                tmp_path / f"{name}.db", embedder="none", background=False, sync_sensitive=True
            ) as after:
                sync(after)
                assert only(after).sensitive


@ON_BOTH
def test_stranger_learns_nothing_by_sync(laptop: Laptop, server: Served) -> None:
    ana, eve = laptop("a", "ana", "what eve may not know"), server.client("eve", "writer")
    there, gone, nowhere = (
        only(ana).id,
        ana.remember("purged later").id,
        "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b",
    )
    sync(ana)
    ana.purge(gone)
    sync(ana)

    def pushed(kind: str, id: str, **more: Any) -> Any:
        op = {"op": new_id(), "kind": kind, "id": id, "rev": new_id(), "base": new_id(), **more}
        [ack] = eve.done("POST", "/v1/sync/push", json={"protocol": 1, "place": {}, "ops": [op]})[
            "acks"
        ]
        return {name: value for name, value in ack.items() if name not in ("op", "id")}

    def link(id: str) -> dict[str, str]:
        return {"source": id, "kind": "see-also", "target": id, "created_at": "2026-01-01"}

    acts: tuple[Callable[[str], Any], ...] = (
        lambda id: pushed("edit", id, fields={"content": "x"}),
        lambda id: pushed("share", id, share={"grantee": "eve", "permission": "read"}),
        lambda id: pushed("link", id, link=link(id)),
        lambda id: pushed("resolve", id, revs=["x"]),
        lambda id: pushed("scrub", id, scrubbed={"x": {"content": "x"}}),
    )
    for act in acts:
        assert act(there) == act(gone) == act(nowhere)
        assert act(nowhere)["result"] == "refused"
    answer = eve("POST", "/v1/sync/pull", json={"protocol": 1, "place": {}})
    assert there not in answer.text
    assert gone not in answer.text
    assert eve.done("GET", "/v1/sync/digests") == {}
