"""Describe the code's layout: rooms, layers, imports, files and lines, and files per warm recall.

python benchmarks/studies/structure.py

A room is a folder or single module directly in `src/trivet`. An arrow is an import between rooms.
Layers are the longest chain of arrows; rooms that import each other count as one.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

import grimp

import trivet
from trivet import Trivet

SOURCE = Path(trivet.__file__).parent
FRAGMENT_LINES = 25
TEXTS = (
    "The harbour office keeps its copies in Bremen.",
    "Ines leads the harbour office.",
    "Staging is on port 6543.",
)


def layout() -> dict[str, Any]:
    files = sorted(SOURCE.rglob("*.py"))
    lines = {file: file.read_text(encoding="utf-8").count("\n") for file in files}
    bare = [
        file
        for file, count in lines.items()
        if count < FRAGMENT_LINES and file.name != "__init__.py"
    ]
    sql = sum(file.read_text(encoding="utf-8").count("\n") for file in SOURCE.rglob("*.sql"))
    return {
        "files": len(files),
        "lines": sum(lines.values()),
        "fragments": len(bare),
        "lines of SQL": sql,
    }


def rooms() -> dict[str, int]:
    graph = grimp.build_graph("trivet")
    arrows: dict[str, set[str]] = {}
    for module in graph.modules:
        arrows.setdefault(_room(module), set()).update(
            _room(other) for other in graph.find_modules_directly_imported_by(module)
        )
    below = {room: others - {room} for room, others in arrows.items()}
    return {
        "rooms": len(below),
        "arrows": sum(len(others) for others in below.values()),
        "floors": _floors(below),
    }


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def _floors(below: dict[str, set[str]]) -> int:
    """Skip the package itself: it exports names of upper rooms, and lower ones import it."""
    plain = {room: others - {"__init__"} for room, others in below.items() if room != "__init__"}
    height: dict[str, int] = {}
    for room in TopologicalSorter(plain).static_order():
        height[room] = 1 + max((height[other] for other in plain[room]), default=0)
    return max(height.values())


def recall() -> dict[str, int]:
    """Trace one warm recall in all its threads."""
    passed: set[str] = set()
    crossings = 0

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal crossings
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(str(SOURCE)):
            return
        passed.add(name)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(str(SOURCE)):
            caller = caller.f_back
        crossings += caller is not None and caller.f_code.co_filename != name

    with (
        tempfile.TemporaryDirectory() as folder,
        Trivet.open(Path(folder) / "memory.db", background=False) as memory,
    ):
        for text in TEXTS:
            memory.remember(text)
        memory.drain()
        memory.recall("who leads the office in Bremen")
        threading.setprofile(watch)
        sys.setprofile(watch)
        memory.recall("which port does the harbour office use")
        sys.setprofile(None)
        threading.setprofile(None)
    return {"files of a recall": len(passed), "crossings of a recall": crossings}


if __name__ == "__main__":
    print(json.dumps({**layout(), **rooms(), **recall()}, indent=1))
