"""`trivet demo`: four recalls with the reason for every hit, and one question after a memory that did not come."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet import Trivet
from trivet.cli.demo import lines
from trivet.cli.demo.scenes import SCENES, WHY_NOT, Scene
from trivet.cli.demo.store import demo_path, open_demo
from trivet.cli.output import Line, line, write_json, write_lines
from trivet.cli.progress import LateProgress
from trivet.cli.session import Session
from trivet.cli.views import memories as views
from trivet.cli.views.answer import as_lines
from trivet.errors import InvalidInput

SHOWN = 3


def show_demo(session: Session, embedder: str = "bundled") -> None:
    path = demo_path()
    if session.path is not None:
        raise InvalidInput(f"The demo has a store of its own, {path}. Leave --path out.")
    with opened_demo(path, embedder) as memory:
        if session.as_json:
            write_json(_value(memory, str(path)))
            return
        count = sum(memory.stats().memories.values())
        write_lines([line(f"{count} memories of an invented company are in {path}.")])
        for number, scene in enumerate(SCENES, 1):
            write_lines(_recall(memory, number, scene))
        write_lines(_why_not(memory))
        write_lines(_closing(str(path)))


def opened_demo(path: Path, embedder: str = "bundled") -> Trivet:
    """With progress where it takes a while."""
    total = sum(1 for _ in lines())
    if not path.exists():
        print(f"Making a demo store of {total} memories, which takes a few seconds ...", file=sys.stderr)
    with (
        LateProgress("importing", lambda _: total) as importing,
        LateProgress("embedding", lambda _: total) as embedding,
    ):
        return open_demo(path, importing, embedding, embedder)


def _recall(memory: Trivet, number: int, scene: Scene) -> Iterator[Line]:
    answer = memory.recall(scene.query, limit=SHOWN)
    yield line("")
    yield line((f"{number}. {scene.title}", "bold magenta"))
    yield line(("$ ", "dim"), (f'trivet recall "{scene.query}"', "bold"))
    yield line((scene.point, "italic"))
    yield line("")
    yield from as_lines(answer)


def _why_not(memory: Trivet) -> Iterator[Line]:
    about = memory.get(WHY_NOT.expected)
    yield line((f"{len(SCENES) + 1}. {WHY_NOT.title}", "bold magenta"))
    yield line(("$ ", "dim"), (f'trivet why-not "{WHY_NOT.query}" {WHY_NOT.expected}', "bold"))
    yield line((WHY_NOT.point, "italic"))
    yield line("")
    yield line(views.preview(about.content), indent=4)
    yield from views.why_not(memory.why_not(WHY_NOT.query, WHY_NOT.expected, limit=SHOWN))


def _closing(path: str) -> Iterator[Line]:
    yield line("")
    yield line(("Try next", "bold magenta"))
    yield line(f'  trivet --path {path} recall "which editor does Mira use"')
    yield line(f"  trivet --path {path} list --category decisions")
    yield line('  trivet remember "Your own first memory."     (goes into your own store)')


def _value(memory: Trivet, path: str) -> dict[str, Any]:
    recalls = [memory.recall(scene.query, limit=SHOWN) for scene in SCENES]
    return {
        "path": path,
        "recalls": recalls,
        "why_not": memory.why_not(WHY_NOT.query, WHY_NOT.expected, limit=SHOWN),
    }
