"""The command line announces, reveals, records, rotates and redacts secrets."""

from __future__ import annotations

import json

import pytest

from support.command_line import CommandLine
from support.invented_secrets import github

TEXT = f"The bot logs in with {github('cli')}."


@pytest.fixture
def id(trivet: CommandLine) -> str:
    found: str = trivet.json("remember", TEXT)["id"]
    return found


def test_remember_reports_kinds_and_counts(trivet: CommandLine) -> None:
    result = trivet("remember", TEXT)
    assert "github-token 1" in result.out
    assert "trivet reveal" in result.out
    assert trivet.json("remember", TEXT)["redacted"] == {"github-token": 1}
    assert github("cli") not in result.out


def test_only_reveal_shows_the_secret_and_audit_records_it(trivet: CommandLine, id: str) -> None:
    assert trivet("audit").out == "The record is empty.\n"
    assert github("cli") not in trivet("get", id, "--reveal").out
    assert trivet.json("reveal", id)["content"] == TEXT
    assert github("cli") in trivet("reveal", id).out
    assert [(entry["act"], entry["memory"]) for entry in trivet.json("audit", "--limit", "1")] == [
        ("reveal", id)
    ]
    assert id in trivet("audit").out


def test_rotation(trivet: CommandLine, id: str) -> None:
    assert "1 secrets are sealed" in trivet("rotate-keys").out
    assert trivet.json("rotate-keys", "--drop-old")["dropped"] == 2
    assert trivet.json("reveal", id)["content"] == TEXT


def test_import_and_redact(trivet: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"content": TEXT}).encode()
    assert "github-token 1" in trivet("import", "-", stdin=line).out
    monkeypatch.setenv("TRIVET_SECRETS", "off")
    id = trivet.json("remember", f"Another: {github('clear')}")["id"]
    monkeypatch.setenv("TRIVET_SECRETS", "redact")
    assert "in 1 memories: github-token 1" in trivet("redact").out
    assert trivet.json("get", id)["content"] == "Another: [secret:github-token:1]"


def test_missing_key_has_its_own_exit_status(
    trivet: CommandLine,
    id: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("TRIVET_CONFIG", str(tmp_path_factory.mktemp("elsewhere") / "trivet.toml"))
    result = trivet("reveal", id)
    assert result.status == 7
    assert "is not in the file" in result.err


def test_refused(trivet: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_SECRETS", "refuse")
    result = trivet("remember", TEXT)
    assert (result.status, result.out) == (2, "")
    assert "github-token" in result.err
    assert github("cli") not in result.err
