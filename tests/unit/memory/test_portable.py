"""Export and import lose nothing and follow the merge rules."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from support.store_fixtures import Opened
from trivet import Trivet
from trivet.common.clock import moment
from trivet.common.ids import new_id
from trivet.errors import StoreError


@pytest.fixture
def other(open_trivet: Opened, tmp_path: Path) -> Trivet:
    return open_trivet(tmp_path / "other.db")


@pytest.fixture
def full_store(trivet: Trivet) -> Trivet:
    """A store with every kind of memory and link."""
    one = trivet.remember(
        'Quotes " and \\ and\nlines and \u2028 and 数据 and 😀',
        title="Title",
        category="code",
        tags=["b", "a"],
        importance=0.123456789,
        confidence=0.2,
        expanded_keywords=["k"],
        scope="team/x",
        source="a.py",
        start_line=3,
        end_line=4,
        created_at="2020-02-03T04:05:06.000007Z",
        valid_from="2020-02-03",
        valid_to="2999-02-03",
    ).id
    two = trivet.remember("Second text.").id
    three = trivet.remember("A secret thing.", sensitive=True).id
    four = trivet.remember("Forgotten thing.").id
    five = trivet.remember("Archived thing.").id
    trivet.edit(two, content="Second text, changed.")
    trivet.edit(two, importance=0.9)
    trivet.forget(four)
    trivet.edit(five, state="archived")
    trivet.link(two, "supersedes", one)
    trivet.link(two, "resolved-by", three)
    trivet.link(five, "part-of", two)
    trivet.link(one, "see-also", two)
    return trivet


def all_lines(trivet: Trivet) -> list[Any]:
    return sorted(
        (json.loads(line) for line in trivet.export(include_sensitive=True)), key=json.dumps
    )


def version_1(lines: list[str]) -> list[str]:
    """Convert to format 1, which has no final line."""
    return [lines[0].replace('"trivet_export":2', '"trivet_export":1'), *lines[1:-1]]


def test_round_trip_loses_nothing(full_store: Trivet, other: Trivet) -> None:
    report = other.import_(full_store.export(include_sensitive=True))
    assert (report.stored, report.links, report.errors) == (5, 4, ())
    assert all_lines(other) == all_lines(full_store)
    assert [hit.id for hit in other.recall("second text").hits] == [
        hit.id for hit in full_store.recall("second text").hits
    ]
    assert all(finding.ok for finding in other.doctor())


def test_importing_twice_changes_nothing(full_store: Trivet, other: Trivet) -> None:
    other.import_(full_store.export(include_sensitive=True))
    before = all_lines(other)
    report = other.import_(full_store.export(include_sensitive=True))
    assert (report.stored, report.unchanged, report.updated, report.kept, report.errors) == (
        0,
        5,
        0,
        0,
        (),
    )
    assert all_lines(other) == before


def test_line_order_does_not_matter(full_store: Trivet, other: Trivet) -> None:
    report = other.import_(reversed(list(full_store.export(include_sensitive=True))))
    assert report.errors == ()
    assert all_lines(other) == all_lines(full_store)


def test_imported_memories_are_embedded(
    full_store: Trivet, open_trivet: Opened, tmp_path: Path, embedder: Any
) -> None:
    hybrid = open_trivet(tmp_path / "hybrid.db", embedder=embedder.spec())
    hybrid.import_(full_store.export())
    assert hybrid.drain() == 3
    assert hybrid.recall("second text", recipe="legs(dense)").hits


def test_sensitive_memories_are_exported_only_on_request(full_store: Trivet) -> None:
    lines = list(full_store.export())
    assert not any("secret" in line for line in lines)
    header = json.loads(lines[0])
    assert (header["memories"], header["links"], header["sensitive_left_out"]) == (4, 3, 1)
    assert sum("link" in json.loads(line) for line in lines) == 3


def test_later_update_wins_as_a_new_revision(trivet: Trivet, other: Trivet) -> None:
    id = trivet.remember("ours first").id
    other.import_(trivet.export())
    trivet.edit(id, content="edited over there", tags=["new"])
    report = other.import_(trivet.export())
    assert (report.updated, report.stored) == (1, 0)
    memory = other.get(id)
    assert (memory.content, memory.tags, memory.revision) == ("edited over there", ("new",), 2)
    assert [one.action for one in other.history(id)] == ["remember", "import"]
    assert [hit.id for hit in other.recall("edited").hits] == [id]
    assert other.recall("ours first").hits == ()


def test_older_update_is_ignored(trivet: Trivet, other: Trivet) -> None:
    id = trivet.remember("ours first").id
    old = list(trivet.export())
    other.import_(old)
    other.edit(id, content="edited here")
    report = other.import_(old)
    assert (report.kept, report.updated) == (1, 0)
    assert other.get(id).content == "edited here"


def test_import_deletes_nothing(trivet: Trivet, other: Trivet) -> None:
    mine = other.remember("only here").id
    trivet.remember("only there")
    other.import_(trivet.export())
    assert other.list().total == 2
    assert other.get(mine).state == "active"


def test_plain_lines_are_imported(trivet: Trivet) -> None:
    first, second = new_id(), new_id()
    lines = [
        json.dumps(
            {"content": "Plain text.", "id": first, "links": [{"kind": "see-also", "to": second}]}
        ),
        json.dumps(
            {
                "content": "Full text.",
                "id": second,
                "tags": ["x"],
                "source": {"uri": "a.md", "start_line": 2},
            }
        ),
        json.dumps({"content": "Named source.", "source": "b.md", "created_at": "2020-01-01"}),
        "",
    ]
    report = trivet.import_(lines)
    assert (report.stored, report.links, report.errors) == (3, 1, ())
    source = trivet.get(second).source
    assert source is not None
    assert (source.uri, source.start_line) == ("a.md", 2)
    assert [memory.content for memory in trivet.list(created_before="2021-01-01").memories] == [
        "Named source."
    ]
    assert [link.target for link in trivet.links(first)] == [second]


BAD_LINES = {
    "not JSON": "{",
    "number": "7",
    "null": "null",
    "no content": "{}",
    "empty content": '{"content": " "}',
    "unknown field": '{"content": "x", "colour": "red"}',
    "bad importance": '{"content": "x", "importance": 7}',
    "unknown category": '{"content": "x", "category": "nonsense"}',
    "NUL": '{"content": "a\\u0000b"}',
    "links not a list": '{"content": "x", "links": 7}',
    "link not an object": '{"content": "x", "links": [7]}',
    "newer format": '{"trivet_export": 99, "memories": 0, "links": 0}',
    "incomplete memory": '{"memory": {"id": "x"}}',
    "link to unknown memories": json.dumps(
        {
            "link": {
                "kind": "see-also",
                "source": new_id(),
                "target": new_id(),
                "created_at": "2024-01-01T00:00:00Z",
            }
        }
    ),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_bad_line_is_reported_and_others_are_imported(trivet: Trivet, name: str) -> None:
    report = trivet.import_(['{"content": "good one"}', BAD_LINES[name], '{"content": "good two"}'])
    (error,) = report.errors
    assert error.startswith("line 2:")
    assert {memory.content for memory in trivet.list().memories} >= {"good one", "good two"}
    assert all(finding.ok for finding in trivet.doctor())


def exported(trivet: Trivet, content: str = "A text.") -> dict[str, Any]:
    id = trivet.remember(content).id
    trivet.edit(id, content=f"{content} Changed.")
    lines = [json.loads(line) for line in trivet.export()]
    found: dict[str, Any] = next(line for line in lines if line.get("memory", {}).get("id") == id)
    return found


@pytest.mark.parametrize(
    "change",
    [
        {"content": ""},
        {"importance": 7},
        {"id": "x" * 36},
        {"revision": 0},
        {"revision": 2**63},
        {"state": "lost"},
        {"created_at": "yesterday"},
        {"updated_at": "9999"},
        {"scope": "not a scope"},
        {"tags": ["a\x00"]},
    ],
)
def test_exported_memory_is_validated_like_other_input(
    trivet: Trivet, other: Trivet, change: dict[str, Any]
) -> None:
    line = exported(trivet)
    line["memory"] |= change
    report = other.import_([json.dumps(line)])
    assert len(report.errors) == 1
    assert other.list(state=["active", "archived", "deleted", "superseded"]).total == 0


def test_imported_history_cannot_change_another_memory(trivet: Trivet, other: Trivet) -> None:
    victim = other.remember("The victim's own words.").id
    line = exported(trivet)
    line["history"][0]["memory"]["id"] = victim
    report = other.import_([json.dumps(line)])
    if not report.errors:
        other.restore(line["memory"]["id"], revision=1)
    assert other.get(victim).content == "The victim's own words."


def test_history_cannot_exceed_current_revision(trivet: Trivet, other: Trivet) -> None:
    line = exported(trivet)
    line["history"].append({**line["history"][-1], "revision": 3})
    if not other.import_([json.dumps(line)]).errors:
        assert other.edit(line["memory"]["id"], content="goes on").revision == 3


def test_forgotten_memory_without_history_can_be_restored(trivet: Trivet, other: Trivet) -> None:
    id = trivet.remember("A text.").id
    trivet.forget(id)
    line = json.loads(list(trivet.export())[1])
    line["history"] = []
    assert other.import_([json.dumps(line)]).errors == ()
    assert other.restore(id).content == "A text."


def test_imported_links_are_validated(trivet: Trivet) -> None:
    one, two = trivet.remember("one").id, trivet.remember("two").id
    link = {"kind": "see-also", "source": one, "target": two, "created_at": "2024-01-01T00:00:00Z"}
    for change in (
        {"created_at": "garbage"},
        {"target": one},
        {"kind": "eats"},
        {"source": "x" * 36},
    ):
        report = trivet.import_([json.dumps({"link": link | change})])
        assert len(report.errors) == 1, change
    assert trivet.links(one) == ()
    assert trivet.import_([json.dumps({"link": link})]).errors == ()
    assert trivet.links(one)[0].created_at == moment("2024-01-01")


def test_import_reports_progress_per_line(full_store: Trivet, other: Trivet) -> None:
    steps: list[int] = []
    lines = list(full_store.export())
    other.import_(lines, progress=steps.append)
    assert sum(steps) == len(lines)


def test_deeply_nested_line_is_skipped(trivet: Trivet) -> None:
    imported = trivet.import_(['{"content": "first"}', '{"a":' + "[" * 3000, '{"content": "last"}'])
    assert imported.stored == 2
    assert len(imported.errors) == 1
    assert imported.errors[0].startswith("line 2:")


def test_plain_lines_can_be_imported_again(trivet: Trivet) -> None:
    lines = ['{"content": "one fact"}', '{"content": "one fact", "scope": "elsewhere"}']
    assert trivet.import_(lines).stored == 2
    again = trivet.import_(lines)
    assert (again.stored, again.unchanged) == (0, 2)


def test_invalid_revision_in_history_is_refused(
    trivet: Trivet, open_trivet: Opened, path: Path
) -> None:
    id = trivet.remember("a clean text").id
    trivet.edit(id, content="a cleaner text")
    tampered = [line.replace("a clean text", "a bad\\u0000text") for line in trivet.export()]
    other = open_trivet(path.with_name("other.db"))
    assert "NUL" in other.import_(tampered).errors[0]


def test_known_links_are_not_counted_again(trivet: Trivet, open_trivet: Opened, path: Path) -> None:
    trivet.link(trivet.remember("one").id, "see-also", trivet.remember("two").id)
    lines = list(trivet.export())
    other = open_trivet(path.with_name("other.db"))
    assert [other.import_(lines).links, other.import_(lines).links] == [1, 0]


def test_truncated_export_is_detected(full_store: Trivet, other: Trivet) -> None:
    whole_export = list(full_store.export())
    for lines in (whole_export, version_1(whole_export)):
        for lost in (1, 3, len(lines) - 1):
            [error] = other.import_(lines[:-lost]).errors
            assert error.startswith(f"line {len(lines) - lost}: the export is ")
            assert "import the whole export again" in error
        assert other.import_(lines).errors == ()


def test_modified_export_is_detected(full_store: Trivet, other: Trivet) -> None:
    lines = [line.replace("Archived thing", "Another thing") for line in full_store.export()]
    [error] = other.import_(lines).errors
    assert "checksum" in error
    lines[2] = "{"
    assert [one.partition(":")[0] for one in other.import_(lines).errors] == [
        "line 3",
        f"line {len(lines)}",
    ]


def test_concatenated_exports_are_checked_separately(
    full_store: Trivet, trivet: Trivet, other: Trivet
) -> None:
    lines = list(full_store.export())
    assert other.import_([*lines, *lines]).errors == ()
    assert other.import_([*version_1(lines), *lines]).errors == ()
    assert len(other.import_([*lines, *lines[:-1]]).errors) == 1
    assert len(other.import_([*lines[:2], *lines[3:], *lines]).errors) == 1


def damage(path: Path, sql: str, *values: Any) -> None:
    """Damage one row behind the store's back."""
    with sqlite3.connect(path) as connection:
        assert connection.execute(sql, values).rowcount == 1


BAD_ROWS = (
    "UPDATE memory SET content = CAST(x'ff' || 'heron' AS TEXT) WHERE id = ?",
    "UPDATE memory SET tags = '[[' WHERE id = ?",
    "UPDATE memory SET created_at = 'the heron' WHERE id = ?",
)


def test_unreadable_memory_is_skipped_by_export(trivet: Trivet, other: Trivet, path: Path) -> None:
    ids = [trivet.remember(f"memory number {number}").id for number in range(6)]
    for one, two in ((0, 1), (4, 5)):
        trivet.link(ids[one], "see-also", ids[two])
    for id, sql in zip(ids[1:4], BAD_ROWS, strict=True):
        damage(path, sql, id)
    lines = list(trivet.export())
    assert sorted(json.loads(lines[-1])["unreadable"]) == ids[1:4]
    report = other.import_(lines)
    assert (report.stored, report.links) == (3, 1)
    [error] = report.errors
    assert error.startswith(f"line {len(lines)}:")
    assert all(id in error for id in ids[1:4])
    assert {hit.id for hit in trivet.recall("memory number", collapse=False).hits} == {
        ids[0],
        *ids[4:],
    }
    again = trivet.import_([json.dumps({"content": "anew", "id": id}) for id in ids[1:5]])
    assert [error.partition(":")[0] for error in again.errors] == ["line 1", "line 2", "line 3"]
    for id in ids[1:4]:
        with pytest.raises(StoreError, match="damaged") as raised:
            trivet.get(id)
        assert "heron" not in str(raised.value)


def test_unreadable_revision_or_link_is_skipped_by_export(
    trivet: Trivet, other: Trivet, path: Path
) -> None:
    one, two = trivet.remember("the first").id, trivet.remember("the second").id
    trivet.edit(one, content="the first, changed")
    trivet.link(one, "see-also", two)
    trivet.link(one, "part-of", two)
    damage(
        path, "UPDATE revision SET snapshot = '{' WHERE revision = 1 AND snapshot LIKE '%first%'"
    )
    damage(path, "UPDATE link SET created_at = 'never' WHERE kind = 'see-also'")
    lines = list(trivet.export())
    assert json.loads(lines[-1])["unreadable"] == [f"a link of {one}", f"the history of {one}"]
    report = other.import_(lines)
    assert (report.stored, report.links, len(report.errors)) == (2, 1, 1)
    assert other.get(one).content == "the first, changed"
