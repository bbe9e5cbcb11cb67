"""Exports and imports stream whole stores line by line, whatever the lines hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trivet import Forbidden, Trivet
from trivet.serve.http.tenants import Tenants

from .tcp_proxy import TcpProxy

# Each ends a line in some format, but not in JSON.
LOOK_LIKE_LINE_ENDS = "first\u2028second\u2029third\x85fourth\x0bfifth\x0csixth"


def test_export_matches_the_store(trivet: Trivet, path: Path) -> None:
    first, second = (
        trivet.remember(f"zebra {LOOK_LIKE_LINE_ENDS} {number}").id for number in range(2)
    )
    trivet.edit(first, content="horse")
    trivet.link(second, "see-also", first)
    with Trivet.open(path, embedder="none", background=False) as embedded:
        assert list(trivet.export()) == list(embedded.export())


def test_sensitive_memories_are_exported_only_on_request(trivet: Trivet) -> None:
    trivet.remember("zebra", sensitive=True)
    assert not any("zebra" in line for line in trivet.export())
    assert any("zebra" in line for line in trivet.export(include_sensitive=True))


def test_export_imports_unchanged_into_another_store(trivet: Trivet, tmp_path: Path) -> None:
    id = trivet.remember(f"zebra {LOOK_LIKE_LINE_ENDS}", tags=["a"]).id
    trivet.edit(id, tags=["b"])
    with Trivet.open(tmp_path / "other.db", embedder="none", background=False) as other:
        assert other.import_(trivet.export()).stored == 1
        assert other.get(id).content == trivet.get(id).content
        assert [one.memory.tags for one in other.history(id)] == [("a",), ("b",)]
        assert trivet.import_(other.export()).unchanged == 1


def test_line_numbers_match_the_embedded_object(trivet: Trivet) -> None:
    lines = [
        '{"content": "one"}\n',
        "",
        "broken",
        '{"content":\n "two\u2028lines"}',
        "  ",
        "broken again\r\n",
    ]
    reported: list[int] = []
    imported = trivet.import_(lines, progress=reported.append)
    assert imported.stored == 2
    assert [error.partition(":")[0] for error in imported.errors] == ["line 3", "line 6"]
    assert sum(reported) == len(lines)
    assert {memory.content for memory in trivet.list().memories} == {"one", "two\u2028lines"}


def test_large_import_is_sent_while_it_is_read(trivet: Trivet, network: TcpProxy) -> None:
    def lines() -> Iterator[str]:
        for number in range(2_000):
            if number == 1_000:
                assert network.asked.wait(60), "the first lines should have been sent by now"
            yield f'{{"content": "zebra {number} {"x" * 200}"}}'

    assert trivet.import_(lines()).stored == 2_000
    assert sum(1 for _ in trivet.export()) == 2_002  # plus a header and a last line


def test_invalid_unicode_loses_only_its_line(trivet: Trivet, tmp_path: Path) -> None:
    lines = ['{"content": "one"}', '{"content": "a\ud800b"}', '{"content": "two"}']
    with Trivet.open(tmp_path / "embedded.db", embedder="none", background=False) as embedded:
        here = embedded.import_(lines)
    there = trivet.import_(lines)
    assert there.stored == here.stored == 2
    assert [error.partition(":")[0] for error in there.errors] == ["line 2"]
    assert [error.partition(":")[0] for error in here.errors] == ["line 2"]


def test_refusal_reaches_a_client_that_is_still_sending(served_at: tuple[str, Tenants]) -> None:
    address, tenants = served_at
    with (
        Trivet.open(address, key=tenants.make_key("ben", "reader")) as reader,
        pytest.raises(Forbidden, match="write"),
    ):
        reader.import_(f'{{"content": "zebra {number} {"x" * 200}"}}' for number in range(20_000))


def test_error_in_the_line_source_reaches_the_caller(trivet: Trivet) -> None:
    def lines() -> Iterator[str]:
        yield '{"content": "zebra"}'
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        trivet.import_(lines())
    assert trivet.stats().memories.get("active", 0) <= 1


def test_abandoned_export_leaves_the_client_usable(trivet: Trivet) -> None:
    trivet.remember_many([{"content": f"zebra {number} {'x' * 2000}"} for number in range(200)])
    lines = trivet.export()
    assert "trivet_export" in next(lines)
    lines.close()  # type: ignore[attr-defined]
    assert trivet.list(limit=1).total == 200
