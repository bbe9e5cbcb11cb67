"""An MCP agent for tests: the SDK's client connected to a real server process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, ListRootsResult, Root, TextContent, Tool
from pydantic import FileUrl

from support.waiting import result_of
from support.warm_python import warm

SERVER = "import sys; from trivet.serve.mcp.quick_start import run; run(sys.argv[1])"


def command(path: Path) -> list[str]:
    """Return a command that starts the server in a new Python."""
    return [sys.executable, "-c", SERVER, str(path)]


def environment(path: Path, **extra: str) -> dict[str, str]:
    """Return an environment without the user's configuration and by default without an embedder."""
    own = {
        "TRIVET_CONFIG": str(path.parent / "none.toml"),
        "TRIVET_EMBEDDER": "none",
        "TRIVET_SECRETS_KEYRING": "false",
        "TRIVET_CHANGES": "words",
    }
    inherited = {name: os.environ[name] for name in ("PYTHONPATH", "PATH") if name in os.environ}
    return {**inherited, **own, **extra}


class Agent:
    """A connected client.

    `heard` keeps every answer verbatim, so tests can search for text that must not appear.
    """

    def __init__(self, portal: BlockingPortal, session: ClientSession) -> None:
        self._portal = portal
        self.session = session
        self.heard: list[str] = []

    def ask(self, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            answer = self._portal.call(method, *arguments)
        except Exception as error:
            self.heard.append(str(error))
            raise
        self.heard.append(answer.model_dump_json())
        return answer

    def call(self, name: str, /, **arguments: Any) -> CallToolResult:
        result: CallToolResult = self.ask(self.session.call_tool, name, arguments)
        return result

    def done(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Return the structured result of a call that must succeed."""
        result = self.call(name, **arguments)
        assert not result.is_error, text(result)
        content: dict[str, Any] = unmarked(result.structured_content)
        return content

    def refused(self, name: str, /, **arguments: Any) -> str:
        """Return the text of a call that must fail."""
        result = self.call(name, **arguments)
        assert result.is_error, text(result)
        return text(result)

    def at_once(self, calls: list[tuple[str, dict[str, Any]]]) -> list[CallToolResult]:
        futures = [
            self._portal.start_task_soon(self.session.call_tool, name, given)
            for name, given in calls
        ]
        return [result_of(future) for future in futures]

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.ask(self.session.list_tools).tools}


def unmarked(structured: Any) -> Any:
    """Return a structured result without the mark around stored text.

    The notice names the mark's nonce.
    """
    found = re.search(r"with nonce (\w+)", str(structured.get("notice", "")))
    return (
        _without(structured, re.compile(f"</?memory-data nonce={found.group(1)}>"))
        if found
        else structured
    )


def _without(value: Any, mark: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        return {mark.sub("", name): _without(inner, mark) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without(inner, mark) for inner in value]
    return mark.sub("", value) if isinstance(value, str) else value


def text(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@contextmanager
def agent(
    path: Path,
    program: list[str] | None = None,
    folder: Path | None = None,
    roots: Sequence[Path] = (),
    /,
    **extra: str,
) -> Iterator[Agent]:
    """Start an agent.

    `program` replaces the default way to start the server; `roots` are those the client announces.
    """
    started = _session(
        path, program or warm(*command(path)[1:]), path.with_suffix(".log"), folder, roots, extra
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(started) as session:
        yield Agent(portal, session)


@asynccontextmanager
async def _session(
    path: Path,
    program: list[str],
    log: Path,
    folder: Path | None,
    roots: Sequence[Path],
    extra: dict[str, str],
) -> Any:
    first, *rest = program
    server = StdioServerParameters(
        command=first, args=rest, env=environment(path, **extra), cwd=folder
    )

    async def named(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(root.as_uri())) for root in roots])

    async with AsyncExitStack() as stack:
        errors = stack.enter_context(log.open("a"))
        read, write = await stack.enter_async_context(stdio_client(server, errors))
        session = await stack.enter_async_context(
            ClientSession(read, write, list_roots_callback=named if roots else None)
        )
        await session.initialize()
        yield session
