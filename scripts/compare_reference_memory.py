"""Compare the MCP reference memory server with `trivet mcp --as reference-memory`.

npm install @modelcontextprotocol/server-memory
python scripts/compare_reference_memory.py node_modules/.bin/mcp-server-memory --calls 300

Both run as processes and get the same seeded calls from the SDK's client.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

NAMES = ["Ana", "Ines Vidal", "Acme & Söhne", "100% cotton", "a=b", "名前", "", "Ana "]
KINDS = ["person", "company", "", "Project"]
TEXTS = [
    "Likes green tea.", "line one\nline two", "  blanks  ", "émile 🙂", '"quoted" \\ back', "Tea", "x" * 2000, "[1, 2]",
]  # fmt: skip
RELATIONS = ["works_at", "knows", "is part of"]
QUERIES = ["tea", "ANA", "person", "cotton", "é", "Line One", "=", "%"]
Call = tuple[str, dict[str, Any]]


def calls(count: int, seed: int) -> Iterator[Call]:
    """Draw calls without duplicates in one call: the reference server keeps both, Trivet one."""
    draw = random.Random(seed)

    def some(of: list[str], most: int = 3) -> list[str]:
        return draw.sample(of, draw.randint(0, min(most, len(of))))

    def relations() -> list[dict[str, str]]:
        drawn = {
            (draw.choice(NAMES), draw.choice(RELATIONS), draw.choice(NAMES))
            for _ in range(draw.randint(0, 3))
        }
        return [
            {"from": start, "relationType": kind, "to": to} for start, kind, to in sorted(drawn)
        ]

    def entity(name: str) -> dict[str, Any]:
        return {"name": name, "entityType": draw.choice(KINDS), "observations": some(TEXTS)}

    def observations(key: str) -> list[dict[str, Any]]:
        return [{"entityName": name, key: some(TEXTS)} for name in some(NAMES, 2)]

    made: dict[str, Callable[[], dict[str, Any]]] = {
        "create_entities": lambda: {"entities": [entity(name) for name in some(NAMES)]},
        "create_relations": lambda: {"relations": relations()},
        "add_observations": lambda: {"observations": observations("contents")},
        "delete_entities": lambda: {"entityNames": some(NAMES, 1)},
        "delete_observations": lambda: {"deletions": observations("observations")},
        "delete_relations": lambda: {"relations": relations()},
        "read_graph": dict,
        "search_nodes": lambda: {"query": draw.choice(QUERIES)},
        "open_nodes": lambda: {"names": some(NAMES)},
    }
    yield "read_graph", {"unknown": 1}
    for _ in range(count):
        name = draw.choice([*made, "create_entities", "add_observations"])
        yield name, made[name]()
    yield "read_graph", {}


@asynccontextmanager
async def client(command: list[str], folder: Path) -> AsyncIterator[ClientSession]:
    environment = {
        **os.environ,
        "MEMORY_FILE_PATH": str(folder / "memory.jsonl"),
        "TRIVET_CONFIG": str(folder / "none.toml"),
        "TRIVET_PATH": str(folder / "memory.db"),
        "TRIVET_RESIDENT": "off",
    }
    server = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def asked(session: ClientSession, call: Call) -> dict[str, Any]:
    answer = await session.call_tool(*call)
    return answer.model_dump(
        include={"content", "structured_content", "is_error"}, exclude_none=True
    )


async def listed(session: ClientSession) -> dict[str, Any]:
    """List the tools without the field for task support, which the SDK decides."""
    tools = (await session.list_tools()).tools
    return {tool.name: tool.model_dump(exclude={"execution"}, exclude_none=True) for tool in tools}


async def compare(theirs: list[str], ours: list[str], count: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "theirs").mkdir()
        (Path(folder) / "ours").mkdir()
        async with (
            client(theirs, Path(folder) / "theirs") as one,
            client(ours, Path(folder) / "ours") as other,
        ):
            return await differences(one, other, count, seed)


async def differences(one: ClientSession, other: ClientSession, count: int, seed: int) -> int:
    differing = 0
    wanted, got = await listed(one), await listed(other)
    for name in sorted(wanted | got):
        if wanted.get(name) != got.get(name):
            differing += 1
            print(f"tool {name}:\n  theirs {wanted.get(name)}\n  ours   {got.get(name)}")
    for call in calls(count, seed):
        answer, ours = await asked(one, call), await asked(other, call)
        empty_search = call[0] == "search_nodes" and not answer["structured_content"]["entities"]
        if answer != ours and not empty_search:  # Here Trivet asks recall.
            differing += 1
            print(f"{call}:\n  theirs {answer}\n  ours   {ours}")
    print(f"{count + 2} calls and {len(wanted)} tools compared: {differing} differ.")
    return differing


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("theirs", nargs="+", help="how to start the reference server")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    ours = [sys.executable, "-m", "trivet.cli", "mcp", "--as", "reference-memory"]
    sys.exit(bool(anyio.run(compare, given.theirs, ours, given.calls, given.seed)))


if __name__ == "__main__":
    main()
