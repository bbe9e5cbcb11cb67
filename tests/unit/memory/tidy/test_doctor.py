"""Every problem that `doctor` reports says why it matters and how to fix it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.invented_secrets import github
from support.store_fixtures import Opened
from trivet import Trivet
from trivet.memory.admin.doctor import WHY_IT_MATTERS
from trivet.sources.files import ingest
from trivet.types import Finding

# Checks that only inform and never fail.
INFORMATIONAL = {"inbox"}


def problems(memory: Trivet) -> dict[str, Finding]:
    return {finding.check: finding for finding in memory.doctor() if not finding.ok}


def test_every_check_explains_why_it_matters(memory: Trivet) -> None:
    assert {finding.check for finding in memory.doctor()} - INFORMATIONAL <= set(WHY_IT_MATTERS)
    assert problems(memory) == {}


def test_store_readable_by_others(memory: Trivet, path: Path) -> None:
    path.chmod(0o644)
    found = problems(memory)["rights of the file"]
    assert found.remedy == f"Run `chmod 600 {path}`."
    assert found.matters == "Other users of this machine can read your memories."


def test_missing_ingested_folder(memory: Trivet, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("# A\n\nApples.\n")
    ingest(memory, vault)
    vault.rename(tmp_path / "away")
    found = problems(memory)["folders taken in"]
    assert found.remedy == "Restore it, or run `trivet ingest --drop vault`."


def test_missing_secret_key(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    memory = opened()
    memory.remember(f"The token is {github('doctor')}.")
    memory.close()
    for file in (tmp_path / "config").rglob("*"):
        if file.is_file():
            file.unlink()
    found = problems(opened())["keys of secrets"]
    assert "Restore the key from a backup" in str(found.remedy)


def test_damaged_secret(
    memory: Trivet, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    memory.remember(f"The token is {github('doctor')}.")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE secret SET nonce = zeroblob(12)")
    assert "was damaged or moved" in problems(memory)["keys of secrets"].detail


def test_disk_budget_exceeded(opened: Opened) -> None:
    memory = opened(disk_budget_mb=1)
    memory.remember_many({"content": f"{number} " + "x" * 30_000} for number in range(40))
    found = problems(memory)["budgets"]
    assert "disk_budget_mb" in str(found.remedy)


def test_budgets_report_usage_and_limits(opened: Opened) -> None:
    memory = opened(
        disk_budget_mb=500,
        capture_llm="openai:tiny@http://127.0.0.1:1/v1",
        capture_llm_tokens_a_day=50,
    )
    memory.engine.store.inbox.spend(20, 50)
    used = {one.name: one.used for one in memory.budgets()}
    allowed = {one.name: one.allowed for one in memory.budgets()}
    assert used["language model for capture"] == 20
    assert used["memory of this process"] > 10
    assert [
        allowed[name] for name in ("language model for capture", "language model for the graph")
    ] == [50, 0]
    assert allowed["store on disk"] == 500
