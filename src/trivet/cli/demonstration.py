"""`trivet demo`, with a store of its own in the cache folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from trivet import Trivet
from trivet.cli.session import Session
from trivet.cli.terminal import DelayedProgress, Line, line, write_json, write_lines
from trivet.cli.views import memories as views
from trivet.cli.views.answer import answer_lines
from trivet.errors import InvalidInput, StoreError
from trivet.settings import Settings, cache_folder
from trivet.types import Progress


@dataclass(frozen=True, slots=True)
class Scene:
    """A question of the demo; `expected` is the memory that must come first."""

    title: str
    query: str
    point: str
    expected: str


SCENES: tuple[Scene, ...] = (
    Scene(
        title="The words are there",
        query="wildcard certificate does not renew",
        point="The lexical leg finds the words; the problem comes with the memory that resolves "
        "it.",
        expected="019aa04a-01a0-7202-b0ce-2c2f8909e25e",
    ),
    Scene(
        title="Other words, the same meaning",
        query="someone lost the password of a private notebook",
        point="Only one word is shared. The dense leg knows that a `phrase` can be a password, "
        "and why it is lost.",
        expected="019957ee-bdc0-79d6-ae5e-6de19b41fa74",
    ),
    Scene(
        title="An identifier",
        query="E_CONN_4012",
        point="Error codes match as a whole: E_CONN_4009 and E_CONN_4031 are other errors.",
        expected="019a0668-e8d0-71ba-8dea-9af915d951f3",
    ),
    Scene(
        title="Two steps away",
        query="how long may the text in speech-v3.md be when spoken",
        point="One memory names the file, another the four minutes; the graph connects them "
        "through the wedding.",
        expected="01a00c63-a8c8-7892-a3b2-0896d9c96100",
    ),
    Scene(
        title="What was true once",
        query="may I deploy harbor on a Friday morning",
        point="An older memory allows it and matches better, but it was superseded, so its "
        "successor is served and says so.",
        expected="019bff2e-a288-7246-b98c-3660b88f8127",
    ),
)

# Sensitive, so never embedded, and in other words than the query.
WHY_NOT = Scene(
    title="Why was this one not found?",
    query="someone lost the password of a private notebook",
    point="The office's Wi-Fi password is stored too. `why-not` shows at which step any memory "
    "dropped out.",
    expected="0195a367-7fc0-7833-9822-6b43b68139b5",
)


def lines() -> Iterator[str]:
    # splitlines() also cuts inside JSON texts.
    return iter(
        files("trivet.lab")
        .joinpath("house", "memories.jsonl")
        .read_text(encoding="utf-8")
        .rstrip("\n")
        .split("\n")
    )


def demo_path(environment: Mapping[str, str] | None = None) -> Path:
    return cache_folder(environment) / "demo.db"


def open_demo(
    path: Path, importing: Progress, embedding: Progress, embedder: str = "bundled"
) -> Trivet:
    """Open the demo's store, fully embedded; the user's settings do not apply."""
    # Reading all pairs would take longer than everything else.
    settings = Settings(path=str(path), embedder=embedder, background=False, changes="words")
    try:
        return _filled(settings, importing, embedding)
    except StoreError:
        _remove(path)  # it holds only the demo, so rebuilding is the best repair
        return _filled(settings, importing, embedding)


def _filled(settings: Settings, importing: Progress, embedding: Progress) -> Trivet:
    memory = Trivet.open(settings=settings)
    try:
        taken = memory.import_(lines(), progress=importing)
        memory.drain(progress=embedding)
        problems = [finding.detail for finding in memory.doctor() if not finding.ok]
        if taken.errors or taken.kept or problems:
            raise StoreError(f"The demo's store is not complete: {[*taken.errors, *problems][:1]}.")
    except BaseException:
        memory.close()
        raise
    return memory


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


SHOWN = 3


def show_demo(session: Session, embedder: str = "bundled") -> None:
    path = demo_path()
    if session.path is not None:
        raise InvalidInput(f"The demo has its own store, {path}. Leave out --path.")
    with open_demo_with_progress(path, embedder) as memory:
        if session.as_json:
            write_json(_value(memory, str(path)))
            return
        count = sum(memory.stats().memories.values())
        write_lines([line(f"{count} memories of an invented company are in {path}.")])
        for number, scene in enumerate(SCENES, 1):
            write_lines(_recall(memory, number, scene))
        write_lines(_why_not(memory))
        write_lines(_closing_lines(str(path)))


def open_demo_with_progress(path: Path, embedder: str = "bundled") -> Trivet:
    total = sum(1 for _ in lines())
    if not path.exists():
        print(
            f"Creating a demo store of {total} memories, which takes a few seconds ...",
            file=sys.stderr,
        )
    with (
        DelayedProgress("importing", lambda _: total) as importing,
        DelayedProgress("embedding", lambda _: total) as embedding,
    ):
        return open_demo(path, importing, embedding, embedder)


def _recall(memory: Trivet, number: int, scene: Scene) -> Iterator[Line]:
    answer = memory.recall(scene.query, limit=SHOWN)
    yield line("")
    yield line((f"{number}. {scene.title}", "bold magenta"))
    yield line(("$ ", "dim"), (f'trivet recall "{scene.query}"', "bold"))
    yield line((scene.point, "italic"))
    yield line("")
    yield from answer_lines(answer)


def _why_not(memory: Trivet) -> Iterator[Line]:
    about = memory.get(WHY_NOT.expected)
    yield line((f"{len(SCENES) + 1}. {WHY_NOT.title}", "bold magenta"))
    yield line(("$ ", "dim"), (f'trivet why-not "{WHY_NOT.query}" {WHY_NOT.expected}', "bold"))
    yield line((WHY_NOT.point, "italic"))
    yield line("")
    yield line(views.preview(about.content), indent=4)
    yield from views.why_not(memory.why_not(WHY_NOT.query, WHY_NOT.expected, limit=SHOWN))


def _closing_lines(path: str) -> Iterator[Line]:
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
