"""Check that two versions answer alike: the same queries on every surface, to the last digit.

python benchmarks/studies/same_answers.py BEFORE/.venv/bin AFTER/.venv/bin

Each version uses its public surfaces (Python, command line, MCP, HTTP) on its own copy of a store:
--store, or the demo's 400 memories as stored by the version before. --queries is a file with one
query per line, or JSON objects with `text`; the default is the lab's own dataset. Prints
differences per surface, and exits with 1 if there are any. Durations and nonces are ignored.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

HOUSE = Path(__file__).parents[2] / "src" / "trivet" / "lab" / "house" / "queries.jsonl"
# The command line needs a process per query, so it gets every third.
ONE_IN = {"python": 1, "cli": 3, "mcp": 1, "http": 1}
SHOWN = 10
TIMED = {"took_ms", "stages_ms"}
MARK = re.compile(r'(nonce[ =]\\*"?)[0-9a-f]{12}|\b\d+(?:\.\d+)? ?ms\b')

# The version's own Python runs these scripts, which use only its public interface.
ASKERS = {
    "python": """
import msgspec
from trivet import Trivet
with Trivet.open(store) as memory:
    for query in queries:
        tell(msgspec.to_builtins(memory.recall(query)))
""",
    "cli": """
import subprocess
for query in queries:
    done = subprocess.run([trivet, "recall", "--json", "--path", store, "--", query], capture_output=True, text=True)
    tell({"status": done.returncode, "out": json.loads(done.stdout or "null"), "errors": done.stderr})
""",
    "mcp": """
import anyio, os
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
async def ask():
    server = StdioServerParameters(command=trivet, args=["mcp", "--path", store], env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        for query in queries:
            tell((await session.call_tool("memory_recall", {"query": query})).model_dump(mode="json"))
anyio.run(ask)
""",
    "http": """
import re, subprocess, urllib.request
def run(*words):
    return json.loads(subprocess.check_output([trivet, *words, "--path", store, "--json"]))
run("user", "add", "local", "--role", "admin")
key = run("key", "add", "local")["key"]
words = [trivet, "serve", "--port", "0", "--path", store]
server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    address = re.search(r"http://[\\w.]+:\\d+", server.stdout.readline())[0]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    for query in queries:
        asked = urllib.request.Request(address + "/v1/recall", json.dumps({"query": query}).encode(), headers)
        with urllib.request.urlopen(asked) as answer:
            tell(json.load(answer))
finally:
    server.terminate()
    server.wait()
""",
}
OPENING = """
import json, sys
store, trivet, queries = json.load(sys.stdin)
def tell(value):
    print(json.dumps(value, sort_keys=True, default=str), flush=True)
"""


def main() -> int:
    given = arguments()
    queries = read_queries(given.queries)[: given.most]
    differing = 0
    with tempfile.TemporaryDirectory(prefix="same-answers-") as place:
        folder = Path(place)
        store = given.store or demo_store(given.before, folder)
        for surface in given.surfaces.split(","):
            asked = queries[:: ONE_IN[surface]]
            before, after = (
                answers(surface, bin, copied(store, folder / surface / side), asked)
                for side, bin in (("before", given.before), ("after", given.after))
            )
            found = [
                line
                for pair in zip_longest(before, after)
                for line in differences(*map(canonical, pair))
            ]
            print(
                f"{surface}: {len(after)} answers of {len(asked)}, {len(found)} differences",
                flush=True,
            )
            for line in found[:SHOWN]:
                print(f"  {line}")
            differing += len(found)
    return 1 if differing else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="the bin folder of the version before")
    parser.add_argument("after", type=Path, help="the bin folder of the other version")
    parser.add_argument("--store", type=Path, help="a store file")
    parser.add_argument("--queries", type=Path, default=HOUSE)
    parser.add_argument("--most", type=int, default=500, help="maximum number of queries")
    parser.add_argument("--surfaces", default=",".join(ASKERS), help=f"some of {','.join(ASKERS)}")
    given = parser.parse_args()
    if unknown := set(given.surfaces.split(",")) - set(ASKERS):
        parser.error(
            f"there is no surface {', '.join(sorted(unknown))}; there are {', '.join(ASKERS)}"
        )
    return given


def read_queries(file: Path) -> list[str]:
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [json.loads(line)["text"] if line.startswith("{") else line for line in lines]


def environment(home: Path) -> dict[str, str]:
    """Return an isolated home, and time limits no busy machine reaches."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TRIVET_", "XDG_"))
    }
    limits = dict.fromkeys(("LEG", "RERANK", "EXPAND", "BUSY", "ANSWER"), "600000")
    return kept | {
        "HOME": str(home),
        "TRIVET_RESIDENT": "off",
        "TRIVET_SECRETS_KEYRING": "false",
        "TRIVET_SERVER_REQUESTS_A_MINUTE": "1000000",
        "TRIVET_SERVER_BURST": "1000000",
        **{f"TRIVET_{name}_TIME_LIMIT_MS": value for name, value in limits.items()},
    }


def demo_store(bin: Path, folder: Path) -> Path:
    subprocess.run(
        [bin / "trivet", "demo"], env=environment(folder), stdout=subprocess.DEVNULL, check=True
    )
    return folder / ".cache" / "trivet" / "demo.db"


def copied(store: Path, folder: Path) -> Path:
    folder.mkdir(parents=True)
    for file in store.parent.glob(store.name + "*"):  # With SQLite's companion files.
        shutil.copy(file, folder)
    return folder / store.name


def answers(surface: str, bin: Path, store: Path, queries: list[str]) -> list[Any]:
    given = json.dumps([str(store), str(bin.absolute() / "trivet"), queries])
    done = subprocess.run(
        [bin / "python", "-c", OPENING + ASKERS[surface]],
        input=given,
        stdout=subprocess.PIPE,
        env=environment(store.parent),
        check=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: canonical(one) for name, one in value.items() if name not in TIMED}
    if isinstance(value, list):
        return [canonical(one) for one in value]
    return (
        MARK.sub(lambda found: f"{found[1] or ''}...", value) if isinstance(value, str) else value
    )


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from differences(before.get(name), after.get(name), f"{where}.{name}")
    elif isinstance(before, list) and isinstance(after, list):
        for number, pair in enumerate(zip_longest(before, after)):
            yield from differences(*pair, f"{where}[{number}]")
    elif (type(before), before) != (type(after), after):
        yield f"{where.lstrip('.') or 'answer'}: {str(before)[:200]!r} -> {str(after)[:200]!r}"


if __name__ == "__main__":
    sys.exit(main())
