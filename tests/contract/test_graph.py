"""The graph depends only on the current memories, whatever their history."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.stores import STORES, Open, add, at_rest, link, memory, replace
from trivet.graph.concepts import Triple
from trivet.store.records import WalkSeeds
from trivet.store.relational.store import RelationalStore as Store
from trivet.store.sqlite.store import SqliteStore
from trivet.types import Filter, Memory, State

from .graphs import EVERYTHING, HOW, Four, assert_as_if_new, counts, finish, held, reached, read_all


@pytest.fixture
def four(store: Store) -> tuple[Memory, Memory, Memory, Memory]:
    """Four connected memories, all read."""
    made = (
        memory("we met Clara at Acme in spring"),
        memory("the office of Acme is in Berlin", title="Acme"),
        memory("the fair in Berlin was visited by Emil", tags=("berlin",)),
        memory("nobody knows Dresden as well"),
    )
    add(store, *made)
    assert read_all(store) == 4
    return made


def test_memory_joins_the_graph_after_reading(store: Store) -> None:
    add(store, memory("we met Clara at Acme"), memory("and Acme is here"))
    assert store.graph.backlog("rules").waiting == 2
    assert (counts(store), held(store)) == ((0, 0), {})
    (first, second) = store.graph.lease("rules", 10, 60)
    assert (first.content, first.title, first.revision, first.attempts) == (
        "we met Clara at Acme",
        None,
        1,
        0,
    )
    finish(store, [first])
    assert (counts(store), held(store)) == ((2, 2), {"acme": 1, "clara": 1})
    finish(store, [second])
    assert held(store) == {"acme": 2, "clara": 1}
    assert store.graph.backlog("rules").waiting == 0


def test_walk_moves_between_memories(store: Store, four: Four) -> None:
    first, office, fair, alone = four
    scores = reached(store, first)
    assert scores[office.id] > scores[fair.id] > 0
    assert alone.id not in scores
    seeds = WalkSeeds(
        memories={}, concepts={store.graph.named(["berlin"], EVERYTHING, HOW)[0].concept: 1.0}
    )
    assert {one.id for one in store.graph.walk(seeds, EVERYTHING, HOW, 2)} == {office.id, fair.id}
    assert len(store.graph.walk(seeds, EVERYTHING, HOW, 1)) == 1


def test_concept_is_found_by_any_form(store: Store) -> None:
    add(
        store,
        memory("we met Li Hua there"),
        memory("and LiHua was here"),
        memory("in the U.S.A. it was"),
    )
    read_all(store)
    assert held(store, "li hua", "lihua", "nobody") == {"li hua": 2, "lihua": 2}


def test_edit_removes_old_words_at_once(store: Store, four: Four, tmp_path: Path) -> None:
    first, _, fair, _ = four
    replace(store, msgspec.structs.replace(first, content="we met Emil in Dresden"))
    assert held(store) == {"acme": 1, "berlin": 2, "dresden": 1, "emil": 1}
    assert reached(store, first) == {}
    read_all(store)
    assert held(store) == {"acme": 1, "berlin": 2, "dresden": 2, "emil": 2}
    assert fair.id in reached(store, first)
    assert_as_if_new(store, tmp_path / "new")


@pytest.mark.parametrize("end", ["forgotten", "purged", "made sensitive", "archived"])
def test_removed_memories_leave_the_graph(
    store: Store, four: Four, end: str, tmp_path: Path
) -> None:
    first, office, fair, _ = four
    if end == "purged":
        store.memories.purge(office.id)
    else:
        changes: dict[str, dict[str, object]] = {
            "forgotten": {"state": "deleted"},
            "made sensitive": {"sensitive": True},
            "archived": {"state": "archived"},
        }
        replace(store, msgspec.structs.replace(office, **changes[end]))
        read_all(store)
    usual = Filter()
    assert held(store, filter=usual) == {
        "acme": 1,
        "clara": 1,
        "berlin": 1,
        "dresden": 1,
        "emil": 1,
    }
    assert reached(store, first, filter=usual) == reached(store, fair, filter=usual) == {}
    assert_as_if_new(store, tmp_path / "new")


@pytest.mark.parametrize(
    "away", [{"state": "deleted"}, {"sensitive": True}, {"content": "nothing"}]
)
def test_restored_memories_return_to_the_graph(
    store: Store, four: Four, away: dict[str, object], tmp_path: Path
) -> None:
    first, office, fair, _ = four
    before = reached(store, first)
    gone = replace(store, msgspec.structs.replace(office, **away))
    read_all(store)
    assert reached(store, first) != before
    back = {"state": "active", "sensitive": False, "content": office.content}
    replace(store, msgspec.structs.replace(gone, **back), "restore")
    read_all(store)
    assert reached(store, first) == pytest.approx(before)
    assert fair.id in before
    assert_as_if_new(store, tmp_path / "new")


def test_sensitive_memory_is_never_read(store: Store) -> None:
    add(
        store, memory("the password of Clara at Acme", sensitive=True), memory("x", state="deleted")
    )
    assert store.graph.lease("rules", 10, 60) == ()
    assert store.graph.backlog("rules").waiting == 0
    assert counts(store) == (0, 0)
    assert store.upkeep.rebuild_graph() == 0
    assert all(finding.ok for finding in store.upkeep.findings())


def test_purged_name_is_not_in_the_file(open_store: Open, tmp_path: Path) -> None:
    store = open_store()
    only, shared = memory("we met Xyzzyplugh Quuxfrob at Acme"), memory("and Acme stays")
    add(store, only, shared)
    read_all(store)
    assert "xyzzyplughquuxfrob" in held(store, "xyzzyplughquuxfrob")
    store.memories.purge(only.id)
    assert held(store, "xyzzyplughquuxfrob", "acme") == {"acme": 1}
    assert counts(store) == (1, 1)
    store.close()
    on_disk = at_rest(tmp_path).lower()
    assert b"acme" in on_disk
    assert b"xyzzy" not in on_disk
    assert b"quuxfrob" not in on_disk


def test_walk_follows_links(store: Store, four: Four, tmp_path: Path) -> None:
    first, _, _, alone = four
    store.links.add(link(first, "see-also", alone))
    assert alone.id in reached(store, first)
    assert first.id in reached(store, alone)
    assert_as_if_new(store, tmp_path / "new")
    store.links.remove(first.id, "see-also", alone.id)
    assert alone.id not in reached(store, first)
    store.links.add(link(alone, "supersedes", first))
    assert alone.id in reached(store, first)
    store.memories.purge(alone.id)
    assert set(reached(store, first)) - {first.id} == {four[1].id, four[2].id}


def test_filtered_memories_get_and_pass_no_weight(store: Store, tmp_path: Path) -> None:
    ours = [memory("we met Clara at Acme", scope="a"), memory("the fair of Acme", scope="a")]
    theirs = [
        memory("Clara and Acme are in Berlin", scope="b"),
        memory("so Berlin and Acme it is", scope="b"),
    ]
    add(store, *ours, *theirs)
    read_all(store)
    filter = Filter(scope="a")
    assert held(store, filter=filter) == {"clara": 1, "acme": 2}
    assert set(reached(store, ours[0])) > {ours[1].id}
    alone = STORES["sqlite"](tmp_path / "alone")
    add(alone, *ours)
    read_all(alone)
    assert reached(store, ours[0], filter=filter) == reached(alone, ours[0])
    alone.close()


def test_missing_and_unknown_seeds(store: Store, four: Four, open_store: Open) -> None:
    first, office, _, alone = four
    replace(store, msgspec.structs.replace(alone, state="deleted"))
    purged = memory("we met Acme")
    add(store, purged)
    store.memories.purge(purged.id)
    seeds = WalkSeeds(
        memories={first.id: 0.5, alone.id: 0.2, purged.id: 0.2, "nobody": 0.1},
        concepts={10**9: 1.0},
    )
    for one in (store, open_store()):
        assert office.id in {candidate.id for candidate in one.graph.walk(seeds, Filter(), HOW, 10)}
        assert one.graph.paths([office.id, purged.id, "nobody"], seeds, Filter(), HOW)[office.id]


def test_path_names_its_stops(store: Store, four: Four) -> None:
    first, office, fair, _ = four
    seeds = WalkSeeds(memories={first.id: 1.0}, concepts={})
    paths = store.graph.paths([office.id, fair.id, first.id], seeds, Filter(), HOW)
    assert [(step.kind, step.name) for step in paths[office.id]] == [
        ("memory", first.id),
        ("concept", "Acme"),
    ]
    assert [step.name for step in paths[fair.id]] == [first.id, "Acme", office.id, "Berlin"]
    assert first.id not in paths


def test_empty_graph(store: Store) -> None:
    one = memory("nothing with a capital")
    add(store, one)
    assert read_all(store) == 1
    assert held(store) == reached(store, one) == {}
    assert store.graph.named([], Filter(), HOW) == ()
    assert store.graph.walk(WalkSeeds(memories={}, concepts={}), Filter(), HOW, 10) == []
    assert all(finding.ok for finding in store.upkeep.findings())


def test_rules_and_triples_form_one_graph(store: Store, four: Four) -> None:
    first, _, _, alone = four
    assert store.graph.ask_for_triples() == 4
    readings = {one.content: one for one in store.graph.lease("triples", 10, 60)}
    said = Triple(subject="Dresden", relation="is far from", object="ACME")
    hostile = Triple(subject="...", relation="is", object="x" * 500)
    store.graph.finish_triples([(readings[alone.content], [hostile, said, hostile])])
    assert held(store, "acme", "dresden") == {"acme": 3, "dresden": 1}
    assert alone.id in reached(store, first)
    assert store.memories.stats().statements == 1
    assert store.upkeep.rebuild_graph() == 4
    read_all(store)
    assert held(store, "acme", "dresden") == {"acme": 3, "dresden": 1}, "what a model found stays"
    replace(store, msgspec.structs.replace(alone, content="we met Emil"))
    assert store.memories.stats().statements == 0
    assert held(store, "acme", "dresden") == {"acme": 2}
    assert all(finding.ok for finding in store.upkeep.findings())


def test_rebuild_keeps_correct_results(store: Store, four: Four, tmp_path: Path) -> None:
    before = reached(store, four[0])
    assert store.upkeep.rebuild_graph() == 4
    assert reached(store, four[0]) == before, "the old graph answers until the rebuild ends"
    assert read_all(store) == 4
    assert reached(store, four[0]) == pytest.approx(before)
    assert_as_if_new(store, tmp_path / "new")


STATES: tuple[State, ...] = ("active", "archived", "deleted")


def test_graph_is_exact_after_any_sequence_of_changes(store: Store, tmp_path: Path) -> None:
    """Compare a long mixed history with a store that saw only its end."""
    texts = [
        f"we met {one} and {two} there"
        for one in ("Clara", "Acme", "Berlin")
        for two in ("Emil", "Dresden", "Acme")
    ]
    current = [memory(text) for text in texts]
    add(store, *current)
    for turn in range(60):
        at = (turn * 7) % len(current)
        now = store.memories.get(current[at].id)
        if turn % 5 == 0:
            change: dict[str, object] = {"content": texts[(turn * 3) % len(texts)]}
        elif turn % 5 == 1:
            change = {"sensitive": not now.sensitive}
        else:
            change = {
                "state": STATES[(turn // 5) % 3],
                "title": f"Emil {turn}" if turn % 2 else None,
            }
        replace(store, msgspec.structs.replace(now, **change))
        if turn % 3 == 0:
            read_all(store)
        if turn % 11 == 0:
            reached(store, now)
    read_all(store)
    assert_as_if_new(store, tmp_path / "new")


def test_doctor_reports_graph_errors(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    one = memory("we met Clara at Acme")
    add(store, one, memory("and Acme was here"))
    read_all(store)
    for damage, check in (
        ("INSERT INTO concept (name) VALUES ('nobody')", "concepts that nothing mentions"),
        ("DELETE FROM was_read", "memories neither in the graph nor waiting for it"),
        ("UPDATE memory SET sensitive = 1", "concepts of deleted or sensitive memories"),
    ):
        with store._database.write() as connection:
            connection.execute("SAVEPOINT damaged")
            connection.execute(damage)
            wrong = [finding for finding in store.upkeep.findings() if not finding.ok]
            connection.execute("ROLLBACK TO damaged")
        assert check in [finding.check for finding in wrong]
        assert any("reindex --graph" in (finding.remedy or "") for finding in wrong)
    store.close()
