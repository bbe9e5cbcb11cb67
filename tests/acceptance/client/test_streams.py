"""Whole stores over the wire: exports and imports line by line, with whatever the lines hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trivet import Forbidden, Trivet
from trivet.serve.http.tenants import Tenants

from .between import Wire

# Each ends a line somewhere, but not in JSON.
LOOK_LIKE_LINE_ENDS = "first\u2028second\u2029third\x85fourth\x0bfifth\x0csixth"


def test_an_export_is_that_of_the_store(trivet: Trivet, path: Path) -> None:
    first, second = (
        trivet.remember(f"zebra {LOOK_LIKE_LINE_ENDS} {number}").id for number in range(2)
    )
    trivet.edit(first, content="horse")
    trivet.link(second, "see-also", first)
    with Trivet.open(path, embedder="none", background=False) as embedded:
        assert list(trivet.export()) == list(embedded.export())


def test_sensitive_memories_leave_only_if_asked_for(trivet: Trivet) -> None:
    trivet.remember("zebra", sensitive=True)
    assert not any("zebra" in line for line in trivet.export())
    assert any("zebra" in line for line in trivet.export(include_sensitive=True))


def test_an_export_goes_into_another_store_as_it_is(trivet: Trivet, tmp_path: Path) -> None:
    id = trivet.remember(f"zebra {LOOK_LIKE_LINE_ENDS}", tags=["a"]).id
    trivet.edit(id, tags=["b"])
    with Trivet.open(tmp_path / "other.db", embedder="none", background=False) as other:
        assert other.import_(trivet.export()).stored == 1
        assert other.get(id).content == trivet.get(id).content
        assert [one.memory.tags for one in other.history(id)] == [("a",), ("b",)]
        assert trivet.import_(other.export()).unchanged == 1


def test_lines_are_counted_as_the_embedded_object_counts_them(trivet: Trivet) -> None:
    lines = [
        '{"content": "one"}\n',
        "",
        "broken",
        '{"content":\n "two\u2028lines"}',
        "  ",
        "broken again\r\n",
    ]
    told: list[int] = []
    imported = trivet.import_(lines, progress=told.append)
    assert imported.stored == 2
    assert [error.partition(":")[0] for error in imported.errors] == ["line 3", "line 6"]
    assert sum(told) == len(lines)
    assert {memory.content for memory in trivet.list().memories} == {"one", "two\u2028lines"}


def test_a_large_import_is_sent_while_it_is_read(trivet: Trivet, between: Wire) -> None:
    def lines() -> Iterator[str]:
        for number in range(2_000):
            if number == 1_000:
                assert between.asked.wait(60), "the first lines should be on their way by now"
            yield f'{{"content": "zebra {number} {"x" * 200}"}}'

    assert trivet.import_(lines()).stored == 2_000
    assert sum(1 for _ in trivet.export()) == 2_002  # with a header and a last line


def test_what_is_no_unicode_costs_its_own_line(trivet: Trivet, tmp_path: Path) -> None:
    lines = ['{"content": "one"}', '{"content": "a\ud800b"}', '{"content": "two"}']
    with Trivet.open(tmp_path / "embedded.db", embedder="none", background=False) as embedded:
        here = embedded.import_(lines)
    there = trivet.import_(lines)
    assert there.stored == here.stored == 2
    assert [error.partition(":")[0] for error in there.errors] == ["line 2"]
    assert [error.partition(":")[0] for error in here.errors] == ["line 2"]


def test_a_refusal_reaches_whoever_is_still_sending(house_at: tuple[str, Tenants]) -> None:
    address, house = house_at
    with (
        Trivet.open(address, key=house.make_key("ben", "reader")) as reader,
        pytest.raises(Forbidden, match="write"),
    ):
        reader.import_(f'{{"content": "zebra {number} {"x" * 200}"}}' for number in range(20_000))


def test_an_error_of_the_lines_reaches_the_caller(trivet: Trivet) -> None:
    def lines() -> Iterator[str]:
        yield '{"content": "zebra"}'
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        trivet.import_(lines())
    assert trivet.stats().memories.get("active", 0) <= 1


def test_an_export_that_is_left_early_leaves_the_client_usable(trivet: Trivet) -> None:
    trivet.remember_many([{"content": f"zebra {number} {'x' * 2000}"} for number in range(200)])
    lines = trivet.export()
    assert "trivet_export" in next(lines)
    lines.close()  # type: ignore[attr-defined]
    assert trivet.list(limit=1).total == 200
