"""An MCP server starts, shares its store, ends, and keeps what it acknowledged."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.mcp_agent import Agent, agent, command, environment, text
from support.waiting import LIMIT_SECONDS
from support.warm_python import warm
from trivet import Trivet

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def line(id: int, method: str, **parameters: Any) -> bytes:
    return (
        json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}).encode()
        + b"\n"
    )


def storing(id: int, content: str) -> bytes:
    return line(id, "tools/call", name="memory_store", arguments={"content": content})


@contextmanager
def server(
    path: Path, program: list[str] | None = None, /, **extra: str
) -> Iterator[subprocess.Popen[bytes]]:
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(
        program or command(path), env=environment(path, **extra), **pipes
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[bytes], message: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(message)
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def stored_id(answer: dict[str, Any]) -> str:
    return str(answer["result"]["structuredContent"]["id"])


@contextmanager
def writing_elsewhere(path: Path) -> Iterator[None]:
    """Hold the store's write lock, as another process may."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def contents(memory: Agent) -> list[str]:
    return sorted(entry["content"] for entry in memory.done("memory_list", limit=1000)["memories"])


def kept(path: Path) -> dict[str, str]:
    """Return a store's contents by id after the process that wrote it has ended."""
    with Trivet.open(path, embedder="none", background=False) as memory:
        return {one.id: one.content for one in memory.list(limit=1000).memories}


def test_end_of_input_answers_every_request_first(tmp_path: Path) -> None:
    wanted = [f"Note {number}." for number in range(20)]
    sent = line(1, "initialize", **HELLO) + b"".join(
        storing(2 + n, text) for n, text in enumerate(wanted)
    )
    with server(tmp_path / "memory.db") as process:
        out, err = process.communicate(sent)
    assert process.returncode == 0
    assert err == b""
    answers = [json.loads(answer) for answer in out.splitlines()]
    assert sorted(answer["id"] for answer in answers) == list(range(1, 22))
    assert len({stored_id(answer) for answer in answers if answer["id"] > 1}) == 20
    assert sorted(kept(tmp_path / "memory.db").values()) == sorted(wanted)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_after_the_running_request(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "memory.db"
    with server(path, TRIVET_EMBEDDER="bundled") as process:
        tell(process, line(1, "initialize", **HELLO) + storing(2, "First."))
        assert [hear(process)["id"], hear(process)["id"]] == [1, 2]
        with writing_elsewhere(path):
            tell(process, storing(3, "Under way.") + line(4, "ping"))
            assert (
                hear(process)["id"] == 4
            )  # so the third request has been received and waits for the store
            process.send_signal(number)
        stored = stored_id(hear(process))
        assert process.wait(LIMIT_SECONDS) == 0  # with its input still open
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert kept(path)[stored] == "Under way."


def test_acknowledged_memories_survive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with server(path) as process:
        tell(process, line(1, "initialize", **HELLO))
        hear(process)
        for number in range(5):
            tell(process, storing(2 + number, f"Kept {number}."))
            assert hear(process)["id"] == 2 + number
        process.kill()
        process.wait(LIMIT_SECONDS)
    assert sorted(kept(path).values()) == [f"Kept {number}." for number in range(5)]


def test_lost_client_ends_the_server(tmp_path: Path) -> None:
    with server(tmp_path / "memory.db") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        tell(process, line(1, "initialize", **HELLO))
        process.stdin.close()
        assert process.wait(LIMIT_SECONDS) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_invalid_line_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with server(path, warm(*command(path)[1:])) as process:
        for broken in (
            b"garbage\n",
            b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"\\ud800"}}\n',
            b"\xff\n",
        ):
            tell(process, broken)
            answer = hear(process)
            assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        tell(process, line(1, "initialize", **HELLO))
        assert hear(process)["id"] == 1


def test_two_servers_share_a_store(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with agent(path) as one, agent(path) as other:
        id = one.done("memory_store", content="Written by one.")["id"]
        assert [hit["id"] for hit in other.done("memory_recall", query="written")["hits"]] == [id]
        other.done("memory_update", id=id, content="Rewritten by the other.")
        assert one.done("memory_get", id=id)["content"] == "Rewritten by the other."
        writes: list[tuple[str, dict[str, Any]]] = [
            ("memory_store", {"content": f"Both {n}."}) for n in range(10)
        ]
        for answer in (*one.at_once(writes[:5]), *other.at_once(writes[5:])):
            assert not answer.is_error
        assert len(contents(one)) == len(contents(other)) == 11


def test_concurrent_calls_are_all_answered(tmp_path: Path) -> None:
    with agent(tmp_path / "memory.db", TRIVET_EMBEDDER="bundled") as memory:
        writes: list[tuple[str, dict[str, Any]]] = [
            ("memory_store", {"content": f"Fact {n} of many."}) for n in range(40)
        ]
        reads: list[tuple[str, dict[str, Any]]] = [
            ("memory_recall", {"query": "fact"}) for _ in range(20)
        ]
        mixed = [call for pair in zip(writes[:20], reads, strict=True) for call in pair] + writes[
            20:
        ]
        answers = memory.at_once(mixed)
        assert [text(answer) for answer in answers if answer.is_error] == []
        assert len(contents(memory)) == 40


def test_store_that_cannot_be_opened_is_reported_and_retried(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_text("this is no database, but long enough to be taken for a damaged one " * 50)
    with agent(path) as memory:
        assert len(memory.tools()) > 0
        assert str(path) in memory.refused("memory_stats")
        path.unlink()
        assert memory.done("memory_stats")["memories"] == {}


def test_initialize_is_answered_before_heavy_imports() -> None:
    code = """if True:
        import sys
        from trivet.serve.mcp.stdio import LazyStore
        from trivet.serve.mcp.server import build_server
        build_server(LazyStore(None)).create_initialization_options()
        print([name for name in ("numpy", "onnxruntime", "tokenizers", "trivet.memory.engine") if name in sys.modules])
    """
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "[]"


def test_unexpected_error_is_short_for_clients_and_fully_logged(tmp_path: Path) -> None:
    code = command(tmp_path / "memory.db")
    broken = "import trivet.serve.mcp.results as lean; lean.stored = None; "
    code[2] = broken + code[2]
    sent = line(1, "initialize", **HELLO) + storing(2, "x") + line(3, "tools/list")
    run = subprocess.run(
        code, input=sent, capture_output=True, env=environment(tmp_path / "memory.db"), check=True
    )
    answers = {
        answer["id"]: answer["result"] for answer in map(json.loads, run.stdout.splitlines())
    }
    assert answers[2]["isError"] is True
    assert "TypeError" in answers[2]["content"][0]["text"]
    assert "Traceback" not in answers[2]["content"][0]["text"]
    assert b"memory_store failed with TypeError" in run.stderr
    assert b"serve/mcp/tools.py" in run.stderr, "the traceback is logged"
    assert answers[3]["tools"]
