"""A verb declared outside the package, with its body alone, works on every surface."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import mcp_agent
from support.http_server import served, settings_for
from trivet import AsyncTrivet, Forbidden, InvalidInput, Trivet
from trivet.contract import VERBS
from trivet.methods import AsyncMethods, Methods
from trivet.types import Caller

DECLARED = "import sys; sys.path.insert(0, sys.argv.pop(1)); import support.custom_verb; "
TESTS = str(Path(__file__).parents[1])


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    importlib.reload(importlib.import_module("support.custom_verb"))
    yield
    del VERBS["echo"]
    for facade in (Methods, AsyncMethods):
        delattr(facade, "echo")


@pytest.fixture
def memory(path: Path) -> Iterator[Any]:
    with Trivet.open(path, embedder="none") as opened:
        opened.remember("The harbour opens at six.")
        yield opened


def test_python(memory: Any) -> None:
    echoed = memory.echo("hello", times=2)
    assert (echoed.text, echoed.memories) == ("hello hello", 1)
    with pytest.raises(InvalidInput, match="times: expected int <= 3"):
        memory.echo("hello", times=4)
    with pytest.raises(TypeError, match="tims"):
        memory.echo("hello", tims=4)


def test_help(memory: Any) -> None:
    method: Any = Trivet.echo  # type: ignore[attr-defined]
    assert (
        str(inspect.signature(method))
        == "(self, /, text: str, *, times: int = 1) -> support.custom_verb.Echoed"
    )
    assert ":param times: How often to say it." in method.__doc__


def test_rights(memory: Any) -> None:
    caller = Caller(
        tenant="default", user="ana", key="k", role="writer", rights=frozenset({"write"})
    )
    with pytest.raises(Forbidden, match="does not allow you to read"):
        memory.acting_as(caller).echo("hello")


def test_http_and_both_clients(tmp_path: Path) -> None:
    with served(settings_for(tmp_path / "memory.db")) as server:
        ana = server.client("ana")
        assert ana.done("GET", "/v1/echo/hello", params={"times": 2})["text"] == "hello hello"
        assert "How often to say it." in ana.refused(
            422, "GET", "/v1/echo/hello", params={"times": 4}
        )
        described = ana.done("GET", "/openapi.json")["paths"]["/v1/echo/{text}"]["get"]
        assert described["summary"] == "Say a text again, and count the memories."
        address, key = server.address, ana.http.headers["authorization"].removeprefix("Bearer ")
        with Trivet.open(address, key=key) as client:
            echoed = client.echo("hello", times=3)  # type: ignore[attr-defined]
        assert echoed.text == "hello hello hello"

        async def awaited() -> Any:
            async with AsyncTrivet.open(address, key=key) as other:
                return await other.echo("hello", times=3)  # type: ignore[attr-defined]

        assert asyncio.run(awaited()) == echoed


def test_command_line(path: Path) -> None:
    program = DECLARED + "from trivet.cli import main; sys.exit(main())"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, TESTS, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    Trivet.open(path, embedder="none").close()
    output = run("--path", str(path), "echo", "hello", "--times", "2")
    assert (output.returncode, output.stdout) == (0, "text: hello hello\nmemories: 0\n")
    assert "Say a text again" in run("--help").stdout
    assert "--times" in run("echo", "--help").stdout
    assert run("echo", "hello", "--times", "4").returncode == 2


def test_mcp(path: Path) -> None:
    program = DECLARED + "from trivet.serve.mcp.quick_start import run; run(sys.argv[1])"
    command = [sys.executable, "-c", program, TESTS, str(path)]
    with mcp_agent.agent(path, command) as memory:
        tool = memory.tools()["memory_echo"]
        assert (tool.description or "").endswith("count the memories. Use it to hear yourself.")
        assert memory.done("memory_echo", text="hello", times=2)["result"] == {
            "text": "hello hello",
            "memories": 0,
        }
        assert "How often to say it." in memory.refused("memory_echo", text="hello", times=4)
