"""A member program receives the query safely and runs within bounds."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from trivet.errors import InvalidInput
from trivet.settings.systems import ExternalSystem, check_systems

from .conftest import Opened
from .systems import PATIENT_MS, SHORT_MS, health_of, printing, program, saying

ECHO = "import sys, json; print(json.dumps({'hits': [{'id': 'told', 'text': TOLD}]}))"


def received(federation: Opened, query: str, **member: object) -> str:
    answer = federation(echo={"time_limit_ms": PATIENT_MS, **member}).recall(query, federated=True)
    assert health_of(answer, "echo").answered, answer.health
    return answer.foreign[0].text


def test_query_as_an_argument(federation: Opened) -> None:
    command = [*program(ECHO.replace("TOLD", "repr(sys.argv[1:])")), "--q={query}", "{fetch_k}"]
    assert received(federation, 'where\'s "the" $HOME; `ls`?', command=command, fetch_k=7) == repr(
        ['--q=where\'s "the" $HOME; `ls`?', "7"]
    )


def test_query_on_standard_input_without_a_placeholder(federation: Opened) -> None:
    command = program(ECHO.replace("TOLD", "sys.stdin.read()"))
    assert received(federation, "where is the key?", command=command) == "where is the key?\n"


def test_words_become_a_regular_expression(federation: Opened) -> None:
    command = [*program(ECHO.replace("TOLD", "sys.argv[1]")), "{words}"]
    assert received(federation, "What is the (key) of C++?", command=command) == r"key|c\+\+"


def test_query_cannot_become_an_option(federation: Opened) -> None:
    command = [*program(ECHO.replace("TOLD", "sys.argv[1]")), "{query}"]
    assert received(federation, "--pre=/bin/evil", command=command) == "pre=/bin/evil"


def test_query_of_stop_words_finds_nothing_by_words(federation: Opened) -> None:
    command = [*program(ECHO.replace("TOLD", "sys.argv[1]")), "{words}"]
    answer = federation(echo={"command": command, "time_limit_ms": PATIENT_MS}).recall(
        "what is it", federated=True
    )
    assert health_of(answer, "echo").answered
    assert answer.foreign == ()


def test_query_that_looks_like_a_placeholder_is_unchanged(federation: Opened) -> None:
    command = [*program(ECHO.replace("TOLD", "sys.argv[1]")), "{query}"]
    assert received(federation, "{fetch_k} {words}", command=command) == "{fetch_k} {words}"


def test_query_inside_a_shell_script_is_refused(federation: Opened) -> None:
    with pytest.raises(InvalidInput, match="part of its script") as refused:
        federation(bad={"command": ["/bin/sh", "-c", "grep -rn {query} notes"]})
    assert "federation.bad" in str(refused.value)
    script = ["sh", "-c", 'printf \'{"hits": [{"id": "x", "text": "%s"}]}\' "$1"', "sh", "{query}"]
    assert received(federation, "a; touch b", command=script) == "a; touch b"


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "--norc", "-c", "grep -rn {query} notes"],
        ["bash", "-c", "-e", "grep -rn {query} notes"],
        ["bash", "-c", "-o", "pipefail", "grep -rn {words} notes"],
        ["nice", "env", "-i", "/bin/sh", "-ec", "grep -rn {query} notes"],
        ["fish", "--command=grep -rn {query} notes"],
        ["pwsh", "-NoProfile", "-Command", "Search {query}"],
        ["cmd.exe", "/c", "findstr", "{query}"],
    ],
)
def test_every_way_to_pass_a_script_to_a_shell_is_known(
    federation: Opened, command: list[str]
) -> None:
    with pytest.raises(InvalidInput, match="part of its script"):
        federation(bad={"command": command})


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "--norc", "-c", 'grep -rn -e "$1" notes', "bash", "{words}"],
        ["bash", "search.sh", "{query}"],
        ["pwsh", "-ExecutionPolicy", "Bypass", "-File", "search.ps1", "{query}"],
    ],
)
def test_query_may_be_an_argument_of_a_script(command: list[str]) -> None:
    check_systems({"good": ExternalSystem(command=tuple(command))})
    with pytest.raises(InvalidInput, match="would run the query"):
        check_systems({"bad": ExternalSystem(command=(command[0],))})


@pytest.mark.parametrize("command", [("sh",), ("/bin/bash", "-s"), ("pwsh", "-NoProfile")])
def test_shell_that_would_read_the_query_is_refused(
    command: tuple[str, ...],
) -> None:
    with pytest.raises(InvalidInput, match="would run the query"):
        check_systems({"bad": ExternalSystem(command=command)})


def test_trivet_keys_are_not_in_its_environment(
    federation: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_KEY", "canary-key")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")
    monkeypatch.setenv("NOTES_TOKEN", "meant for it")
    command = program("import os\n" + ECHO.replace("TOLD", "repr(sorted(os.environ.items()))"))
    environment = received(federation, "x", command=command, environment=["NOTES_TOKEN"])
    assert "canary" not in environment
    assert "meant for it" in environment
    assert "PATH" in environment


def test_hanging_program_is_killed_with_its_children(federation: Opened, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = f"""
import os, time
child = os.fork()
with open({str(pids)!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
time.sleep(1000)
"""
    memory = federation(hung={"command": program(code), "time_limit_ms": 1_500})
    memory.remember("The key is under the mat.")
    answer = memory.recall("where is the key", federated=True)
    assert [hit.content for hit in answer.hits] == ["The key is under the mat."]
    assert "did not end in time" in (health_of(answer, "hung").reason or "")
    assert answer.health.degraded
    for pid in map(int, pids.read_text().split()):
        wait_until_gone(pid)


def wait_until_gone(pid: int) -> None:
    """Wait: a killed process is a zombie until its parent collects it."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        os.sched_yield()
    os.kill(pid, signal.SIGKILL)
    raise AssertionError(f"process {pid} was left running")


def test_program_that_never_reads_does_not_block(federation: Opened) -> None:
    """A query of 8,000 four-byte characters fits in a pipe; closing it must not block."""
    memory = federation(deaf=printing({"hits": [{"id": "x"}]}))
    answer = memory.recall("🔑" * 8000, federated=True)
    assert [hit.id for hit in answer.foreign] == ["x"]


def test_output_is_bounded_while_it_arrives(federation: Opened) -> None:
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    memory = federation(
        flood={"command": program(code), "most_bytes": 1_000_000, "time_limit_ms": PATIENT_MS}
    )
    assert "more than 1000000 bytes" in (
        health_of(memory.recall("x", federated=True), "flood").reason or ""
    )


def test_failing_program_reports_its_reason(federation: Opened) -> None:
    failing = program("import sys; sys.stderr.write('no index here'); sys.exit(3)")
    memory = federation(
        failing={"command": failing, "time_limit_ms": PATIENT_MS},
        missing={"command": ["/no/such/program", "{query}"]},
    )
    answer = memory.recall("x", federated=True)
    assert "status 3 (1 of 1 times" in (health_of(answer, "failing").reason or "")
    assert "no index here" not in repr(answer)  # the program's words are for people, not for agents
    findings = {finding.check: finding.detail for finding in memory.doctor()}
    assert "it says: no index here" in findings["federation failing"]
    assert "its program cannot be started" in (health_of(answer, "missing").reason or "")
    assert "/no/such/program" in findings["federation missing"]
    again = memory.recall("x", federated=True)
    assert "3 of 3 times" in (health_of(again, "failing").reason or "")


def test_members_are_asked_concurrently(federation: Opened, tmp_path: Path) -> None:
    """Each member waits until the other has started; asked in turn, the first would never end."""
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
    meet = "open({!r}, {!r}).close(); open({!r}, {!r}).close(); print('{{\"hits\": []}}')"
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    memory = federation(
        first={"command": program(meet.format(one, "w", two, "r")), "time_limit_ms": PATIENT_MS},
        second={"command": program(meet.format(one, "r", two, "w")), "time_limit_ms": PATIENT_MS},
    )
    answer = memory.recall("x", federated=True)
    assert health_of(answer, "first").answered
    assert health_of(answer, "second").answered


def test_disabled_system_is_not_asked(federation: Opened) -> None:
    off = {
        "command": program("import time; time.sleep(1000)"),
        "enabled": False,
        "time_limit_ms": SHORT_MS,
    }
    answer = federation(off=off, on=printing([])).recall("x", federated=True)
    assert [leg.leg for leg in answer.health.legs if leg.leg in ("on", "off")] == ["on"]


def test_formats(federation: Opened) -> None:
    lines = "\n".join(
        json.dumps({"path": {"text": path}, "n": n}) for path, n in (("b.md", 1), ("a.md", 2))
    )
    rg = [
        {"type": "begin", "data": {"path": {"text": "notes/a.md"}}},
        {
            "type": "match",
            "data": {
                "path": {"text": "notes/a.md"},
                "lines": {"text": "the key\n"},
                "line_number": 3,
            },
        },
        {
            "type": "match",
            "data": {"path": {"bytes": "/w=="}, "lines": {"text": "key\n"}, "line_number": 1},
        },
        {
            "type": "match",
            "data": {
                "path": {"text": "notes/b.md"},
                "lines": {"text": "mat, key\n"},
                "line_number": 9,
            },
        },
        {"type": "summary", "data": {}},
    ]
    memory = federation(
        each=saying(f"{lines}\nno json\n", format="jsonl", id="path.text", score="n"),
        rg=saying("\n".join(map(json.dumps, rg)), format="rg"),
        grep=saying(
            "notes/a.md:3:the key\nno match\nC:/b.md:7:key: under the mat\n", format="lines"
        ),
        nested=printing(
            {"result": {"items": [{"doc": ["x", "z.md"]}]}}, hits="result.items", id="doc.1"
        ),
    )
    answer = memory.recall("key under the mat", federated=True, limit=20)
    by_system = {
        name: sorted(
            ((hit.legs[name].rank, hit.id) for hit in answer.foreign if name in hit.systems),
            key=lambda pair: pair[0] or 0,
        )
        for name in ("each", "rg", "grep", "nested")
    }
    assert by_system == {
        "each": [(1, "a.md"), (2, "b.md")],
        "rg": [(1, "notes/b.md"), (2, "notes/a.md")],
        "grep": [(1, "C:/b.md"), (2, "notes/a.md")],
        "nested": [(1, "z.md")],
    }
    assert any("each: 1 of its hits without a usable id" in note for note in answer.health.notes)
    assert next(hit.line for hit in answer.foreign if hit.id == "notes/b.md") == 9
