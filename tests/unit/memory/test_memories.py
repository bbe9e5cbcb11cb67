"""A memory is stored once, edited, inspected, forgotten, restored, and purged."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trivet import Conflict, InvalidInput, NotFound, StoreError, Trivet
from trivet.common.ids import new_id


def contents(trivet: Trivet, query: str) -> list[str]:
    return [hit.content for hit in trivet.recall(query).hits]


def test_every_field_is_kept(trivet: Trivet) -> None:
    id = new_id()
    trivet.remember(
        "The relay listens on port 7001.",
        id=id,
        title="Relay",
        category="code",
        tags=["net", "prod", "net"],
        importance=0.9,
        confidence=0.4,
        expanded_keywords=["socket"],
        scope="team/relay",
        source="src/relay.py",
        start_line=3,
        end_line=9,
        created_at="2024-05-01T12:00:00+02:00",
        valid_from="2024-05-02",
        valid_to="2999-05-02",
    )
    memory = trivet.get(id)
    assert (memory.title, memory.category, memory.tags) == ("Relay", "code", ("net", "prod"))
    assert (memory.importance, memory.confidence, memory.expanded_keywords) == (
        0.9,
        0.4,
        ("socket",),
    )
    assert memory.source is not None
    assert (memory.source.uri, memory.source.start_line, memory.source.end_line) == (
        "src/relay.py",
        3,
        9,
    )
    assert memory.created_at == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert memory.valid_from == datetime(2024, 5, 2, tzinfo=UTC)
    assert (memory.scope, memory.state, memory.revision) == ("team/relay", "active", 1)


def test_ids_are_uuid7_and_rise_with_time(trivet: Trivet) -> None:
    ids = [trivet.remember(f"text {number}").id for number in range(3)]
    assert [uuid.UUID(id).version for id in ids] == [7, 7, 7]
    assert [id[:8] for id in ids] == sorted(id[:8] for id in ids)


def test_early_years_keep_their_order(trivet: Trivet) -> None:
    trivet.remember("late", created_at="2024-01-01")
    trivet.remember("early", created_at="0033-04-03")
    assert [memory.content for memory in trivet.list().memories] == ["late", "early"]


def test_storing_again_is_a_reported_no_op(trivet: Trivet) -> None:
    id = new_id()
    first = trivet.remember("The relay listens on port 7001.", id=id)
    again = trivet.remember("The relay listens on port 7001.", id=id)
    assert (first.status, again.status) == ("stored", "unchanged")
    assert again.near_duplicates == ()
    trivet.edit(id, importance=0.9)
    assert trivet.remember("The relay listens on port 7001.", id=id).revision == 2
    assert trivet.get(id).importance == 0.9


def test_same_id_with_other_content_is_a_conflict(trivet: Trivet) -> None:
    id = trivet.remember("The relay listens on port 7001.").id
    with pytest.raises(Conflict, match="other content"):
        trivet.remember("The relay listens on port 9.", id=id)
    assert contents(trivet, "relay port") == ["The relay listens on port 7001."]


def test_edit_is_visible_to_search_at_once(trivet: Trivet) -> None:
    id = trivet.remember("The relay listens on port 7001.", title="Relay", tags=["net"]).id
    edited = trivet.edit(id, content="The gateway moved to the cellar.", title=None, tags=["house"])
    assert (edited.revision, edited.title, edited.tags) == (2, None, ("house",))
    assert contents(trivet, "relay") == []
    assert contents(trivet, "cellar") == ["The gateway moved to the cellar."]
    assert trivet.list(tags=["net"]).total == 0
    assert trivet.list(tags=["house"]).total == 1


def test_edit_keeps_unnamed_fields(trivet: Trivet) -> None:
    id = trivet.remember(
        "text", title="Title", tags=["a"], importance=0.9, source="x.py", start_line=4
    ).id
    before = trivet.get(id)
    after = trivet.edit(id, confidence=0.3)
    assert after.confidence == 0.3
    assert (after.title, after.tags, after.importance, after.source) == (
        before.title,
        before.tags,
        before.importance,
        before.source,
    )


def test_unchanged_edit_creates_no_revision(trivet: Trivet) -> None:
    id = trivet.remember("text", importance=0.5).id
    assert trivet.edit(id, importance=0.5).revision == 1
    assert len(trivet.history(id)) == 1


def test_edit_can_require_a_revision(trivet: Trivet) -> None:
    id = trivet.remember("text").id
    trivet.edit(id, content="first", if_revision=1)
    with pytest.raises(Conflict, match="revision 2"):
        trivet.edit(id, content="second", if_revision=1)
    assert trivet.get(id).content == "first"


def test_source_can_be_changed_and_removed(trivet: Trivet) -> None:
    id = trivet.remember("text", source="a.py", start_line=3, end_line=4).id
    moved = trivet.edit(id, source="b.py").source
    assert moved is not None
    assert (moved.uri, moved.start_line) == ("b.py", 3)
    assert trivet.edit(id, source=None).source is None


@pytest.mark.parametrize("state", ["deleted", "superseded"])
def test_reserved_states_cannot_be_set(trivet: Trivet, state: str) -> None:
    id = trivet.remember("text").id
    with pytest.raises(InvalidInput, match="state"):
        trivet.edit(id, state=state)  # type: ignore[arg-type]
    assert trivet.get(id).state == "active"


def test_archived_memory_is_hidden_until_requested(trivet: Trivet) -> None:
    id = trivet.remember("The relay listens.").id
    trivet.edit(id, state="archived")
    assert contents(trivet, "relay") == []
    assert [hit.id for hit in trivet.recall("relay", state=["archived"]).hits] == [id]
    trivet.edit(id, state="active")
    assert contents(trivet, "relay") == ["The relay listens."]


def test_history_and_diff_show_changes(trivet: Trivet) -> None:
    id = trivet.remember("The relay listens on port 7001.\nIt is old.").id
    trivet.edit(id, content="The relay listens on port 7002.\nIt is old.")
    trivet.edit(id, importance=0.9)
    history = trivet.history(id)
    assert [(one.revision, one.action) for one in history] == [
        (1, "remember"),
        (2, "edit"),
        (3, "edit"),
    ]
    assert [one.memory.importance for one in history] == [0.5, 0.5, 0.9]
    diff = trivet.diff(id, 1, 2).splitlines()
    assert "-The relay listens on port 7001." in diff
    assert "+The relay listens on port 7002." in diff
    assert " It is old." in diff
    assert "+importance: 0.9" in trivet.diff(id, 2, 3).splitlines()
    trivet.edit(id, tags=["net", "prod"], source="relay.md", end_line=7, sensitive=False)
    later = trivet.diff(id, 3, 4).splitlines()
    assert {"+tags: net, prod", "+source: relay.md 7"} < set(later), "in readable form"
    assert trivet.diff(id, 2, 2) == ""
    with pytest.raises(NotFound, match="revision 9"):
        trivet.diff(id, 1, 9)


def test_restoring_a_revision_creates_a_new_one(trivet: Trivet) -> None:
    id = trivet.remember("The relay listens on port 7001.", tags=["old"]).id
    trivet.edit(id, content="The gateway is shut.", tags=["new"])
    restored = trivet.restore(id, revision=1)
    assert (restored.revision, restored.content, restored.tags) == (
        3,
        "The relay listens on port 7001.",
        ("old",),
    )
    assert contents(trivet, "relay") == ["The relay listens on port 7001."]
    assert contents(trivet, "gateway") == []
    assert [one.action for one in trivet.history(id)] == ["remember", "edit", "restore"]
    with pytest.raises(NotFound, match="revision 9"):
        trivet.restore(id, revision=9)


def test_forget_and_restore(trivet: Trivet) -> None:
    id = trivet.remember("The relay listens on port 7001.").id
    assert trivet.forget(id).state == "deleted"
    assert contents(trivet, "relay") == []
    assert trivet.list().total == 0
    assert trivet.list(state=["deleted"]).total == 1
    assert trivet.forget(id).revision == 2
    with pytest.raises(Conflict, match="forgotten"):
        trivet.edit(id, importance=0.1)
    with pytest.raises(Conflict, match="forgotten"):
        trivet.remember("The relay listens on port 7001.", id=id)
    assert trivet.restore(id).state == "active"
    assert contents(trivet, "relay") == ["The relay listens on port 7001."]
    with pytest.raises(Conflict, match="not forgotten"):
        trivet.restore(id)


def test_archived_memory_is_restored_as_archived(trivet: Trivet) -> None:
    id = trivet.remember("The relay listens on port 7001.").id
    trivet.edit(id, state="archived")
    trivet.forget(id)
    assert trivet.restore(id).state == "archived"


def test_purge_removes_all_traces(trivet: Trivet, path: Path) -> None:
    id = trivet.remember("The xyzzyplugh listens.", title="xyzzyplugh").id
    other = trivet.remember("Something else.").id
    trivet.link(other, "see-also", id)
    trivet.edit(id, content="The xyzzyplugh moved.")
    trivet.forget(id)
    trivet.purge(id)
    for verb in (trivet.get, trivet.history, trivet.restore, trivet.purge):
        with pytest.raises(NotFound):
            verb(id)
    assert trivet.links(other) == ()
    trivet.close()
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    assert all(b"xyzzyplugh" not in file.read_bytes() for file in files)


def test_remember_many_is_one_transaction(trivet: Trivet) -> None:
    taken = trivet.remember("taken").id
    with pytest.raises(Conflict):
        trivet.remember_many([{"content": "fresh"}, {"content": "clash", "id": taken}])
    assert trivet.list().total == 1
    stored = trivet.remember_many(
        [{"content": "fresh", "tags": ["x"]}, {"content": "taken", "id": taken}]
    )
    assert [one.status for one in stored] == ["stored", "unchanged"]


def test_closed_store_raises_an_error(trivet: Trivet) -> None:
    trivet.close()
    with pytest.raises(StoreError, match="closed"):
        trivet.list()
