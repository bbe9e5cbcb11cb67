"""Code search through the resident process gives the same answers on the current tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.code_tree import code_tree
from support.command_line import CommandLine
from support.resident_home import Home, context_of, prompt
from support.waiting import until


def test_code_answers_are_the_same_with_and_without_it(
    warm: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trivet, folder = CommandLine(monkeypatch), code_tree(tmp_path / "project")
    questions = (
        ("search", "parse retry after"),
        ("symbol", "Client.send"),
        ("related", "shop/retry.py:4"),
    )
    alone = [trivet.json("code", *words, "--root", str(folder)) for words in questions]
    until(lambda: str(folder) in warm.status().code)  # the first search registered the folder
    before = warm.status().calls
    by_resident = [trivet.json("code", *words, "--root", str(folder)) for words in questions]
    assert warm.status().calls == before + len(questions)
    assert [one["hits"] for one in by_resident] == [one["hits"] for one in alone]
    refused = trivet("code", "related", "nowhere.py:1", "--root", str(folder))
    assert (refused.status, "is not in the index" in refused.err) == (2, True)
    (folder / "shop/new.py").write_text("def brand_new() -> None: ...\n")
    until(lambda: trivet("code", "symbol", "brand_new", "--root", str(folder)).status == 0)


def test_another_cache_is_not_used(
    warm: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trivet, folder = CommandLine(monkeypatch), code_tree(tmp_path / "project")
    monkeypatch.setenv("TRIVET_CODE_CACHE", str(tmp_path / "other"))
    assert trivet("code", "symbol", "Client.send", "--root", str(folder)).status == 0
    assert str(folder) not in warm.status().code
    assert len(list((tmp_path / "other").glob("*.db"))) == 1


def test_hook_names_likely_files_when_enabled(warm: Home, tmp_path: Path) -> None:
    """It is silent until the index is open, since no prompt may wait for that."""
    folder = code_tree(tmp_path / "project")
    payload = {**prompt("why does the shop parse retry after wrongly?"), "cwd": str(folder)}
    assert warm.hook("prompt", payload) == b""
    warm.hook("prompt", payload, TRIVET_CODE_HOOK="true")
    until(lambda: str(folder) in warm.status().code)
    first, *files = context_of(warm.hook("prompt", payload, TRIVET_CODE_HOOK="true")).splitlines()
    assert first.startswith("Files that most likely matter")
    assert files[0].startswith("- shop/retry.py:")
    assert len(files) <= 3
    assert warm.hook("prompt", payload) == b""
