"""The tools over HTTP match those over standard input, and each call acts as its caller."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from support.http_server import Client, Served
from support.mcp_agent import Agent, agent, text, unmarked
from trivet.serve.mcp.code_tools import CODE_TOOLS

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@contextmanager
def over_http(server: Served, user: str) -> Iterator[Agent]:
    session = _session(f"{server.address}/mcp", server.key(user))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(session) as connected:
        yield Agent(portal, connected)


@asynccontextmanager
async def _session(address: str, key: str) -> Any:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, verify=False, timeout=60) as http,
        streamable_http_client(address, http_client=http) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


@pytest.fixture(scope="module")
def mina(server: Served) -> Iterator[Agent]:
    with over_http(server, "mina") as connected:
        yield connected


def test_tools_match_those_of_the_command(mina: Agent, path: Path) -> None:
    """Except for code search, which reads the caller's own machine."""
    with agent(path) as by_pipe:
        local = by_pipe.tools()
        assert {local.pop(name).name for name in CODE_TOOLS} == set(CODE_TOOLS)
        assert {name: tool.model_dump() for name, tool in mina.tools().items()} == {
            name: tool.model_dump() for name, tool in local.items()
        }
        assert mina.ask(mina.session.list_prompts) == by_pipe.ask(by_pipe.session.list_prompts)
        assert mina.ask(mina.session.list_resources) == by_pipe.ask(by_pipe.session.list_resources)


def test_a_session(mina: Agent) -> None:
    id = mina.done("memory_store", content="The tide turns at noon.", tags=["tide"])["id"]
    [hit] = mina.done("memory_recall", query="when does the tide turn")["hits"]
    assert hit["id"] == id
    mina.done("memory_update", id=id, content="The tide turns at one.")
    assert mina.done("memory_get", id=id)["content"] == "The tide turns at one."
    assert "never instructions" in text(mina.call("memory_recall", query="tide"))
    assert mina.done("memory_delete", id=id)["state"] == "deleted"
    read = mina.ask(mina.session.read_resource, "trivet://stats")
    assert "embedder: none" in read.contents[0].text


def test_each_call_acts_as_its_caller(server: Served, mina: Agent, ana: Client) -> None:
    with over_http(server, "nils") as nils:
        id = nils.done("memory_store", content="Nils keeps the spare key.")["id"]
        assert nils.done("memory_get", id=id)["id"] == id
        assert "There is no memory" in mina.refused("memory_get", id=id)
        assert mina.done("memory_recall", query="spare key")["hits"] == []
        assert ana("GET", f"/v1/memories/{id}").status_code == 404


def test_concurrent_callers_never_see_each_other(server: Served) -> None:
    """Tool calls of different keys run side by side in one process."""
    clients = [server.client(f"u{number}") for number in range(6)]
    for number, client in enumerate(clients):
        client.done("POST", "/v1/memories", json={"content": f"Locker of user {number}."})

    def owners(number: int) -> set[str]:
        body = {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": "memory_list", "arguments": {}},
        }
        answer = clients[number % 6]("POST", "/mcp", json=body, headers=HEADERS).json()
        return {
            one["content"] for one in unmarked(answer["result"]["structuredContent"])["memories"]
        }

    with ThreadPoolExecutor(6) as threads:
        for number, seen in enumerate(threads.map(owners, range(60))):
            assert seen == {f"Locker of user {number % 6}."}


def test_roles_apply_to_tools(server: Served) -> None:
    key = server.key("rita", "reader")
    session = _session(f"{server.address}/mcp", key)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(session) as connected:
        assert "does not allow you to store" in Agent(portal, connected).refused(
            "memory_store", content="x"
        )


def test_sensitive_content_stays_masked(mina: Agent) -> None:
    id = mina.done("memory_store", content="The vault opens at dusk.", sensitive=True)["id"]
    assert "vault" not in text(mina.call("memory_get", id=id))
    assert "stay masked" in mina.refused("memory_get", id=id, reveal=True)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_no_stream_is_offered(ana: Client, method: str) -> None:
    assert "Allow" in ana.refused(405, method, "/mcp")


RAW: list[bytes] = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[]",
    b"null",
    b"[" * 100_000,
    b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_recall"}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_get", "arguments": []}}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}',
    b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "0"}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "recall"}}',
]


@pytest.mark.parametrize("body", RAW, ids=lambda value: repr(value)[:60])
@pytest.mark.parametrize("version", [None, "2025-06-18", "2099-01-01", "nonsense"])
def test_raw_bodies(ana: Client, body: bytes, version: str | None) -> None:
    headers = HEADERS | ({"MCP-Protocol-Version": version} if version else {})
    assert ana("POST", "/mcp", content=body, headers=headers).status_code < 500


@pytest.mark.parametrize(
    "headers",
    [{}, {"Content-Type": "text/plain"}, {"Accept": "text/html"}, {"Mcp-Session-Id": "x"}],
)
def test_odd_headers(ana: Client, headers: dict[str, str]) -> None:
    assert ana("POST", "/mcp", content=RAW[7], headers=headers).status_code < 500


def test_large_body_is_refused(ana: Client) -> None:
    assert ana("POST", "/mcp", content=b"x" * (5 * 2**20), headers=HEADERS).status_code == 413


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["memory_store", "memory_recall", "memory_get", "memory_list", "memory_update", "memory_delete", "memory_link",
     "memory_why", "memory_feedback", "memory_stats", "memory_nothing"]
)  # fmt: skip
FIELDS = st.sampled_from(
    ["content", "query", "id", "limit", "tags", "scope", "source", "kind", "target", "reveal", "x"]
)


@given(name=NAMES, arguments=st.dictionaries(FIELDS, ANYTHING, max_size=5))
@settings(max_examples=80)
def test_fuzzed_calls(ana: Client, name: str, arguments: dict[str, Any]) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    answer = ana("POST", "/mcp", content=msgspec.json.encode(body), headers=HEADERS)
    assert answer.status_code < 500
    reply = answer.json()
    assert "failed unexpectedly" not in msgspec.json.encode(reply).decode()
    assert reply.get("error", {}).get("code") != -32603, reply


@given(name=NAMES, arguments=st.dictionaries(FIELDS, ANYTHING, max_size=5))
@settings(max_examples=25)
def test_session_survives_fuzzed_calls(mina: Agent, name: str, arguments: dict[str, Any]) -> None:
    """The real client keeps its connection and session throughout."""
    if name == "memory_nothing":
        with pytest.raises(MCPError, match="Unknown tool"):
            mina.call(name, **arguments)
    else:
        assert "failed unexpectedly" not in text(mina.call(name, **arguments))
    assert "memories" in mina.done("memory_stats")
