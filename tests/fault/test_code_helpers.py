"""The index is complete even if helper processes that parse a large tree die or hang."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trivet.code.code_index import CodeIndex
from trivet.code.index import refresh
from trivet.code.index import refresh as helpers

FILES = 12


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIVET_CODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(helpers, "worker_cores", lambda: 3)
    monkeypatch.setattr(helpers, "MIN_SHARED_BYTES", 0)
    folder = tmp_path / "project"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"part{number:02}.py").write_text(
            f"def part_{number}(count: int) -> int:\n    return count\n"
        )
    return folder


@pytest.fixture
def parsed_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that this process parsed."""
    seen: list[str] = []
    facts_of = refresh._facts

    def told(root: Any, file: Any, *rest: Any) -> Any:
        seen.append(file.path)
        return facts_of(root, file, *rest)

    monkeypatch.setattr(refresh, "_facts", told)
    return seen


def found(index: CodeIndex) -> list[str]:
    return [index.search(f"part_{number}", limit=1).hits[0].path for number in range(FILES)]


def all_paths() -> list[str]:
    return [f"part{number:02}.py" for number in range(FILES)]


def test_each_process_parses_its_share(tree: Path, parsed_here: list[str]) -> None:
    with CodeIndex.open(tree) as index:
        told: list[tuple[int, int]] = []
        assert index.refresh(lambda done, of: told.append((done, of))).indexed == FILES
        assert sorted(parsed_here) == all_paths()[::3]
        assert found(index) == all_paths()
        assert told == [(FILES, FILES)]
        assert index.refresh().indexed == 0


def test_dead_helper_leaves_no_gap(
    tree: Path, parsed_here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "sys", _Dying)
    with CodeIndex.open(tree) as index:
        assert index.refresh().indexed == FILES
        assert sorted(parsed_here) == all_paths()
        assert found(index) == all_paths()


def test_hanging_helper_does_not_block(
    tree: Path, tmp_path: Path, parsed_here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    hanging.chmod(0o700)
    monkeypatch.setattr(helpers, "sys", SimpleNamespace(executable=str(hanging)))
    monkeypatch.setattr(helpers, "HELPER_TIMEOUT_SECONDS", 0.0)
    with CodeIndex.open(tree) as index:
        assert index.refresh().indexed == FILES
        assert found(index) == all_paths()
    assert sorted(parsed_here) == all_paths()


def test_without_helpers_this_process_parses_everything(
    tree: Path,
    parsed_here: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(helpers, "sys", _Missing)
    with CodeIndex.open(tree) as index:
        assert found(index) == all_paths()
    assert sorted(parsed_here) == all_paths()
    assert "indexing takes longer" in caplog.text


def test_another_encoder_encodes_in_this_process(tree: Path, parsed_here: list[str]) -> None:
    from trivet.code.encoder import Encoder, bundled

    ours = bundled()
    other = Encoder(
        "another", ours.floor, ours.near, ours.terms, ours.table, ours.scales, ours.asked
    )
    with CodeIndex.open(tree, other) as index:
        index.refresh()
    assert sorted(parsed_here) == all_paths()


class _Dying:
    executable = "/bin/false"


class _Missing:
    executable = "/nowhere/python"
