"""The real command works as a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import CommandLine, new_process
from support.waiting import LIMIT_SECONDS

COMMAND = [sys.executable, "-m", "trivet.cli"]


def test_remember_then_recall_with_the_model() -> None:
    """A second process finds by meaning what the first stored, using the bundled model."""
    stored = new_process(
        "remember",
        "-",
        "--json",
        stdin=b"The feline sleeps on the sofa.\n",
        TRIVET_EMBEDDER="bundled",
    )
    assert (stored.status, stored.err) == (0, "")
    found = new_process("recall", "cat on the couch", "--json", TRIVET_EMBEDDER="bundled")
    assert found.err == ""
    (hit,) = found.json()["hits"]
    assert hit["id"] == stored.json()["id"]
    assert hit["why"]["legs"]["dense"]["rank"] == 1
    assert found.json()["health"]["not_embedded"] == 0


@pytest.mark.usefixtures("empty")
def test_errors_do_not_go_to_standard_output() -> None:
    result = new_process("get", "nonsense")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("trivet: ")


def test_output_is_utf_8_in_any_locale(staging: str, trivet: CommandLine) -> None:
    trivet("remember", "Zwölf Brücken 🦑")
    for extra in ([], ["--json"]):
        result = new_process(
            "recall", "Brücken", *extra, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0"
        )
        assert result.status == 0
        assert "Zwölf Brücken 🦑" in result.out


def test_closed_pipe_is_not_an_error(trivet: CommandLine) -> None:
    for number in range(5):
        trivet("remember", f"{number} " + "word " * 6000)
    reading, writing = os.pipe()
    os.close(reading)  # the reader is gone before the first line is written
    for arguments in (
        ["export"],
        ["list", "--json"],
        ["get", trivet.json("list")["memories"][0]["id"]],
    ):
        ended = subprocess.run(
            [*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
    os.close(writing)


def test_two_processes_may_store_at_once(trivet: CommandLine, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.jsonl" for name in ("one", "two")]
    for file in files:
        file.write_text(
            "".join(f'{{"content": "{file.stem} fact {number}"}}\n' for number in range(50))
        )
    running = [
        subprocess.Popen([*COMMAND, "import", str(file)], stdout=subprocess.DEVNULL)
        for file in files
    ]
    assert [process.wait(LIMIT_SECONDS) for process in running] == [0, 0]
    assert trivet.json("stats")["memories"] == {"active": 100}
    assert all(finding["ok"] for finding in trivet.json("doctor"))


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_terminal_output_is_colored_and_safe(trivet: CommandLine) -> None:
    import pty

    trivet("remember", "A [red]trap[/red] \x1b]0;owned\x07 for terminals.", "--title", "[bold]Trap")
    master, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    ended = subprocess.run(
        [*COMMAND, "recall", "trap"], stdout=terminal, stdin=terminal, env=environment, check=False
    )
    os.close(terminal)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert ended.returncode == 0
    assert "\x1b[1m" in shown
    assert "\x1b]0;" not in shown
    assert "[red]trap[/red]" in shown
    assert "[bold]Trap" in shown


# One process runs all steps: what a step loads stays loaded for later ones, which must not need it
# either.
STEPS: list[tuple[str, set[str]]] = [
    ("import trivet", {"numpy", "onnxruntime", "typer", "rich", "mcp"}),
    ("from trivet.cli import main", {"numpy", "onnxruntime", "typer", "rich", "mcp"}),
    ("main(['--help'])", {"numpy", "onnxruntime", "rich", "mcp"}),
    ("main(['recall', '--help'])", {"numpy", "onnxruntime", "rich", "mcp"}),
    ("main(['config'])", {"numpy", "onnxruntime", "rich", "mcp"}),
    ("main(['list'])", {"onnxruntime", "tokenizers", "rich", "mcp"}),
    ("main(['recall', 'x', '--json'])", {"onnxruntime", "rich", "mcp"}),
]


@pytest.mark.usefixtures("empty")
def test_command_loads_only_what_it_needs() -> None:
    shown = "print('loaded', *sys.modules, file=sys.stderr)"
    script = "\n".join(["import sys", *(f"{step}\n{shown}" for step, _ in STEPS)])
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = [line.split() for line in ended.stderr.splitlines() if line.startswith("loaded ")]
    for (step, never), names in zip(STEPS, loaded, strict=True):
        assert not never.intersection(names), step


def test_completion_is_offered() -> None:
    variables = {"_TRIVET_COMPLETE": "complete_bash", "COMP_WORDS": "trivet re", "COMP_CWORD": "1"}
    assert new_process(stdin=b"", **variables).out.split() == [
        "remember",
        "recall",
        "restore",
        "reindex",
        "redact",
        "reveal",
    ]


def test_mcp_serves_until_its_input_ends() -> None:
    hello = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        b'"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
    )
    result = new_process("mcp", stdin=hello)
    assert result.status == 0, result.err
    assert '"serverInfo"' in result.out
