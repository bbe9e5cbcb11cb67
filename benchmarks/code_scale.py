"""Measure code search on one large tree: first index, search, one edited file, memory.

python benchmarks/code_scale.py FOLDER [--queries FILE]

FOLDER is copied by hard links and stays unchanged. Queries are the lines of FILE, or names the tree
defines. Each figure is made in a new process. Writes docs/results/code-scale.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manifest import manifest
from trivet.code.code_index import CodeIndex

RESULT = Path("docs/results/code-scale.json")
COMMAND = "python benchmarks/code_scale.py FOLDER"
QUERIES = 200


def memory_mb() -> dict[str, float]:
    """Return this process's resident memory, and the part that is not pages of mapped files."""
    told = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kilobytes = {
        line.split(":")[0]: line.split()[1]
        for line in told
        if line.startswith(("VmRSS", "RssAnon"))
    }
    return {
        "resident_mb": round(int(kilobytes["VmRSS"]) / 1024),
        "of_its_own_mb": round(int(kilobytes["RssAnon"]) / 1024),
    }


def first_index(folder: Path) -> dict[str, Any]:
    began = time.perf_counter()
    with CodeIndex.open(folder) as index:
        status = index.refresh()
        used = os.times()
        paths = [folder / path for path in index.paths()]
        return {
            "files": status.files,
            "chunks": status.chunks,
            "symbols": status.symbols,
            "megabytes": round(sum(path.stat().st_size for path in paths) / 1e6, 1),
            "lines": sum(path.read_bytes().count(b"\n") for path in paths),
            "wall_s": round(time.perf_counter() - began, 1),
            "processor_s": round(sum(used[:4]), 1),
            "index_mb": round(
                sum(file.stat().st_size for file in index.file.parent.iterdir()) / 1e6, 1
            ),
            **memory_mb(),
        }


def open_again(folder: Path) -> dict[str, Any]:
    """Time an unchanged tree in a new process, from opening to the first answer."""
    began = time.perf_counter()
    with CodeIndex.open(folder) as index:
        index.refresh()
        index.search("where is a failed request tried again")
        return {"first_answer_s": round(time.perf_counter() - began, 2), **memory_mb()}


def ask(folder: Path, queries: Sequence[str]) -> dict[str, Any]:
    with CodeIndex.open(folder) as index:
        index.refresh()
        index.search("what is kept from the first query on")
        times = []
        for query in queries:
            began = time.perf_counter()
            index.search(query)
            times.append((time.perf_counter() - began) * 1000)
        p50, p95 = np.percentile(times, (50, 95))
        return {
            "queries": len(times),
            "p50_ms": round(p50, 1),
            "p95_ms": round(p95, 1),
            **memory_mb(),
        }


def edit(folder: Path, path: str) -> dict[str, Any]:
    """Time one edit until a new word finds it, as the watcher reports it and by a full scan."""
    with CodeIndex.open(folder) as index:
        index.refresh()
        found = {}
        for name, only in (("watched_ms", (path,)), ("looked_for_ms", ())):
            word = f"canary{name.partition('_')[0]}"
            file = folder / path
            file.write_bytes(file.read_bytes() + f"\n# {word} stands here\n".encode())
            began = time.perf_counter()
            index.refresh(only=only)
            hits = index.search(word).hits
            found[name] = round((time.perf_counter() - began) * 1000, 1)
            assert hits[0].path == path, hits
        return found


def names_of(folder: Path) -> list[str]:
    """Return file names as words, so each query has an answer."""
    with CodeIndex.open(folder) as index:
        paths = sorted(index.paths())
    step = max(len(paths) // QUERIES, 1)
    return [Path(path).stem.replace("_", " ").replace("-", " ") for path in paths[::step]][:QUERIES]


def in_process(what: str, folder: Path, *given: str) -> Any:
    told = subprocess.run(
        [sys.executable, __file__, str(folder), "--do", what, *given],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(told.stdout)


def copied(folder: Path, to: Path) -> None:
    subprocess.run(["cp", "-al", str(folder), str(to)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--do", default="", help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do:
        asked = given.queries.read_text(encoding="utf-8").splitlines() if given.queries else []
        parts = {"index": first_index, "open": open_again, "names": names_of}
        found = ask(given.folder, asked) if given.do == "ask" else None
        found = edit(given.folder, given.path) if given.do == "edit" else found
        print(json.dumps(parts[given.do](given.folder) if given.do in parts else found))
        return
    with tempfile.TemporaryDirectory(dir=given.folder.resolve().parent) as place:
        folder, load = Path(place) / "tree", os.getloadavg()[0]
        copied(given.folder.resolve(), folder)
        os.environ["TRIVET_CODE_CACHE"] = str(Path(place) / "cache")
        value: dict[str, Any] = {
            "manifest": {**manifest(), "command": COMMAND, "load_before": round(load, 2)}
        }
        value["index"] = in_process("index", folder)
        value["open"] = in_process("open", folder)
        queries = Path(place) / "queries"
        asked = given.queries.read_text(encoding="utf-8").splitlines() if given.queries else None
        queries.write_text("\n".join(asked or in_process("names", folder)), encoding="utf-8")
        value["ask"] = in_process("ask", folder, "--queries", str(queries))
        with CodeIndex.open(folder) as index:
            path = max(
                index.paths(),
                key=lambda one: ((folder / one).stat().st_size < 30_000, one.endswith(".py")),
            )
        whole = (folder / path).read_bytes()
        (folder / path).unlink()  # Replace the hard link: the user's file must not change.
        (folder / path).write_bytes(whole)
        value["edit"] = in_process("edit", folder, "--path", path)
    given.out.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: found for key, found in value.items() if key != "manifest"}, indent=1))


if __name__ == "__main__":
    main()
