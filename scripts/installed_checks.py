"""First steps of a user of an installed Trivet; scripts/try_install.py runs them.

ENVIRONMENT/bin/python -I scripts/installed_checks.py TRIVET README

TRIVET is the installed command. The checks use the standard library and Trivet's dependencies; the
repository is not on the path. A line of JSON gives each check's time; the first failure ends the
run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

PORT = "The staging database listens on port 6543."
QUESTION = "which port does the staging database listen on?"
SECONDS = 300
TOUR = re.compile(r"## A tour\n+```console\n(.*?)```", re.DOTALL)
MODULE = re.compile(r"""(?:src|href|from|import)\s*[=(]?\s*["']([^"'#]+\.(?:js|css|svg))["']""")

COMMENT = re.compile(r"^\s*(?://|/?\*).*$", re.MULTILINE)

TRIVET, README = Path(sys.argv[1]), Path(sys.argv[2])


def main() -> None:
    checks: list[Callable[[], None]] = [library, tour, mcp, hooks, page, code, extras]
    took = {}
    try:
        for check in checks:
            began = time.monotonic()
            check()
            took[check.__name__] = round(time.monotonic() - began, 1)
    finally:
        run("down", may_fail=True)
    print(json.dumps(took))


def run(*arguments: str, stdin: str = "", may_fail: bool = False) -> str:
    ended = subprocess.run(
        [str(TRIVET), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if ended.returncode and not may_fail:
        raise SystemExit(
            f"trivet {' '.join(arguments)} ended with {ended.returncode}: "
            f"{ended.stdout}{ended.stderr}"
        )
    return ended.stdout + ended.stderr


def expect(what: str, text: str, told: str) -> None:
    if what not in text:
        raise SystemExit(f"{told}: {what!r} is not in the output:\n{text}")


def library() -> None:
    """Check that Trivet is this environment's, and answers by meaning."""
    import trivet

    expect(
        str(Path(sys.prefix).resolve()),
        str(Path(trivet.__file__).resolve()),
        "where the library is",
    )
    with trivet.Trivet.open("library.db") as memory:
        memory.remember(PORT, tags=["staging"])
        memory.drain()
        expect(
            "6543", memory.recall("what is the test database reached at?").hits[0].content, "recall"
        )


def tour() -> None:
    found = TOUR.search(README.read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f"{README} has no tour.")
    lines = found[1].splitlines()
    script = "\n".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"the tour ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
    for what in ("port 6543", "Remembered: ", "matched: port, database"):
        expect(what.casefold(), ended.stdout.casefold(), "the tour")


def mcp() -> None:
    """Connect with the SDK's client, list tools, store and recall."""
    import anyio
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def talk() -> tuple[list[str], str]:
        server = StdioServerParameters(command=str(TRIVET), args=["mcp"], env=dict(os.environ))
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            await session.call_tool("memory_store", {"content": PORT})
            found = await session.call_tool("memory_recall", {"query": QUESTION})
            return tools, found.model_dump_json()

    tools, found = anyio.run(talk)
    for name in ("memory_recall", "code_search"):
        expect(name, " ".join(tools), "the tools of MCP")
    expect("6543", found, "recall over MCP")


def hooks() -> None:
    """Run the hook command that `trivet install` configures for Claude Code, and the plain one."""
    told = json.dumps(
        {"session_id": "s", "prompt": QUESTION, "cwd": str(Path.cwd()), "hook_event_name": "x"}
    )
    expect("6543", run("hook", "prompt", stdin=told), "the prompt hook")
    run("install", "claude-code", "--yes")
    settings = json.loads((Path.home() / ".claude" / "settings.json").read_text(encoding="utf-8"))
    command = settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    told = told.replace('"s"', '"another"')
    ended = subprocess.run(
        ["sh", "-c", command],
        input=told,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    expect("6543", ended.stdout, "the installed prompt hook")
    run("uninstall", "claude-code", "--yes")


def page() -> None:
    """Check that the page and all its files are served, and that signing in shows the store."""
    address, _, token = run("open", "--print").strip().partition("/#/sign-in/")
    expect("Trivet", fetched(address + "/"), "the page")
    seen, waiting = {"/"}, ["/"]
    while waiting:
        path = waiting.pop()
        named = {
            urllib.parse.urljoin(path, name)
            for name in MODULE.findall(COMMENT.sub("", fetched(address + path)))
        }
        waiting += named - seen
        seen |= named
    if len(seen) < 10:
        raise SystemExit(f"the page names only {sorted(seen)}")
    key = json.loads(fetched(f"{address}/page/sign-in", {"token": token}))["key"]
    expect("6543", fetched(f"{address}/v1/memories", key=key), "the memories of the page")


def fetched(address: str, sent: Any = None, key: str = "") -> str:
    data = None if sent is None else json.dumps(sent).encode()
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": f"Bearer {key}"} if key else {}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(address, data, headers), timeout=SECONDS) as answer:
        found: bytes = answer.read()
    return found.decode()


def code() -> None:
    Path("project").mkdir(exist_ok=True)
    Path("project", "client.py").write_text(
        "def try_again(request):\n    '''Send a failed request once more.'''\n    return "
        "request.send()\n",
        encoding="utf-8",
    )
    found = run("code", "search", "where are failed requests sent again", "--root", "project")
    expect("try_again", found, "code search")


def extras() -> None:
    """Check that a missing extra tells how to install it."""
    for extra, arguments in (
        ("trivet[postgres]", ("recall", "x", "--path", "postgresql://127.0.0.1/x")),
        ("trivet[lab]", ("lab", "run", "house", "--out", "runs")),
    ):
        expect(extra, run(*arguments, may_fail=True), " ".join(arguments))


if __name__ == "__main__":
    main()
