"""With a mistyped path, reading fails and names the nearest store; writing creates a store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from shutil import copyfile

import pytest

from support.command_line import CommandLine
from trivet import InvalidInput, StoreError, Trivet
from trivet.serve.mcp.stdio import LazyStore
from trivet.settings import default_store

READ_COMMANDS = (
    ["recall", "port"],
    ["list"],
    ["get", "0199c2f4"],
    ["forget", "0199c2f4"],
    ["stats"],
    ["doctor"],
    ["export"],
    ["tidy"],
    ["inbox"],
    ["ingest", "--list"],
)


@pytest.mark.parametrize("arguments", READ_COMMANDS, ids=lambda words: words[0])
def test_reading_creates_no_store(
    trivet: CommandLine, staging: str, store: Path, arguments: list[str]
) -> None:
    typo = store.with_name("memroy.db")
    result = trivet(*arguments, "--path", str(typo))
    assert (result.status, result.out) == (5, "")
    assert f"There is no store at {typo}. The nearest store is {store}." in result.err
    assert not typo.exists()


def test_writing_creates_a_store(trivet: CommandLine, store: Path) -> None:
    assert trivet("remember", "The port is 6543.").status == 0
    assert store.exists()
    assert trivet.json("recall", "port")["hits"]


def test_dry_run_reports_and_creates_none(trivet: CommandLine, store: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "port.md").write_text("The port is 6543.")
    result = trivet("ingest", str(tmp_path / "notes"), "--dry-run")
    assert (result.status, result.out) == (0, "Dry run: would store 1 memory; 1 file read.\n")
    assert not store.exists()


def test_memory_path_is_refused() -> None:
    with pytest.raises(InvalidInput, match="temporary folder"):
        Trivet.open(":memory:")
    assert not Path(":memory:").exists()


def test_missing_default_store_is_created(
    trivet: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRIVET_PATH")
    assert trivet("recall", "port").out == "Nothing was found. The store is empty.\n"
    assert default_store().exists()


def test_nearest_suggestion_is_a_store(trivet: CommandLine, staging: str, store: Path) -> None:
    store.with_name("memroy.dc").write_text("no store")
    assert str(store) in trivet("list", "--path", str(store.with_name("memroy.db"))).err


def test_python_creates_unless_told_otherwise(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="There is no store at"):
        Trivet.open(tmp_path / "typo.db", create=False)
    assert not (tmp_path / "typo.db").exists()
    Trivet.open(tmp_path / "typo.db").close()
    Trivet.open(tmp_path / "typo.db", create=False).close()


@pytest.mark.parametrize(("beside", "expected"), [(True, 1), (False, 0)])
def test_mcp_creates_a_store_and_warns_about_a_similar_one(
    tmp_path: Path, empty_store: Path, caplog: pytest.LogCaptureFixture, beside: bool, expected: int
) -> None:
    if beside:
        copyfile(empty_store, tmp_path / "memory.db")
    store = LazyStore(str(tmp_path / "memroy.db"))
    assert asyncio.run(store.run(lambda memory: memory.stats().memories)) == {}
    store.close()
    assert (tmp_path / "memroy.db").exists()
    assert len(caplog.messages) == expected
    assert all(str(tmp_path / "memory.db") in message for message in caplog.messages)
