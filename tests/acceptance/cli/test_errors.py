"""An error is one line on standard error with a meaningful exit status and no stack trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import CommandLine
from trivet import EmbedderError, Trivet

NOBODY = "01997e00-0000-7000-8000-000000000009"


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize(
    ("arguments", "status", "kind", "message"),
    [
        (["get", "not-an-id"], 2, "InvalidInput", "id"),
        (["get", NOBODY], 3, "NotFound", NOBODY),
        (["recall", "x", "--limit", "0"], 2, "InvalidInput", "limit"),
        (["recall", "  "], 2, "InvalidInput", "query"),
        (["recall"], 2, "InvalidInput", "QUERY"),
        (["recall", "x", "--recipe", "nonsense("], 2, "InvalidInput", "nonsense"),
        (["remember", "x", "--importance", "nan"], 2, "InvalidInput", "importance"),
        (["remember", "x", "--category", "gossip"], 2, "InvalidInput", "categories"),
        (["remember", "x", "--nonsense"], 2, "InvalidInput", "--nonsense"),
        (["link", NOBODY, "loves", NOBODY], 2, "InvalidInput", "supersedes"),
        (["import", "/nowhere/file.jsonl"], 2, "InvalidInput", "/nowhere/file.jsonl"),
        (["export", "--output", "/nowhere/file.jsonl"], 5, "StoreError", "/nowhere/file.jsonl"),
        (["backup"], 2, "InvalidInput", "--restore"),
        (["--path", "/dev/null/memory.db", "stats"], 5, "StoreError", "/dev/null"),
    ],
)
def test_status_and_message(
    trivet: CommandLine, arguments: list[str], status: int, kind: str, message: str
) -> None:
    plain = trivet(*arguments)
    assert (plain.status, plain.out) == (status, "")
    assert plain.err.startswith("trivet: ")
    assert plain.err.count("\n") == 1
    assert message in plain.err
    spoken = trivet(*arguments, "--json")
    assert (spoken.status, spoken.out) == (status, "")
    assert spoken.error()["kind"] == kind
    assert message in spoken.error()["message"]


def test_conflict(trivet: CommandLine, staging: str) -> None:
    assert trivet("restore", staging).status == 4
    assert trivet("edit", staging, "--title", "x", "--if-revision", "7").status == 4
    assert trivet("remember", "Something else.", "--id", staging).status == 4


def test_standard_input_must_be_text(trivet: CommandLine) -> None:
    result = trivet("remember", "-", stdin=b"\xff\xfe")
    assert result.status == 2
    assert "UTF-8" in result.err


def test_foreign_file_is_refused(trivet: CommandLine, tmp_path: Path) -> None:
    stranger = tmp_path / "notes.txt"
    stranger.write_text("these are my notes, and there are many of them\n" * 50)
    result = trivet("--path", str(stranger), "stats")
    assert result.status == 5
    assert stranger.read_text().startswith("these are my notes")


@pytest.mark.usefixtures("empty")
def test_embedder_that_cannot_be_loaded(
    trivet: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_EMBEDDER", "folder:/nowhere")
    assert trivet("stats").status == 6


def test_failing_embedder_is_a_warning(
    trivet: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory is stored; only its vector is late."""

    def fail(self: Trivet, **options: object) -> int:
        raise EmbedderError("the model is ill")

    monkeypatch.setenv("TRIVET_EMBEDDER", "bundled")
    monkeypatch.setattr(Trivet, "drain", fail)
    result = trivet("remember", "Lunch is at noon.", "--json")
    assert result.status == 0
    assert result.json()["status"] == "stored"
    assert "the model is ill" in result.err


@pytest.mark.usefixtures("empty")
def test_interrupted(trivet: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Trivet, request: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Trivet, "perform", interrupt)
    assert trivet("stats").status == 130


def test_hosted_embedder_is_not_waited_for(
    trivet: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_EMBEDDER", "openai:some-model@http://127.0.0.1:9/v1#dimensions=8")
    result = trivet("remember", "Lunch is at noon.", "--json")
    assert (result.status, result.err) == (0, "")
    assert trivet.json("stats")["not_embedded"] == 1
