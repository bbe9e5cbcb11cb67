"""The demo's own store: made once in the cache folder, used again, rebuilt if it is damaged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trivet import Trivet
from trivet.cli.demo import lines
from trivet.errors import StoreError
from trivet.settings import Settings, cache_folder
from trivet.types import Progress


def demo_path(environment: Mapping[str, str] | None = None) -> Path:
    return cache_folder(environment) / "demo.db"


def open_demo(path: Path, importing: Progress, embedding: Progress, embedder: str = "bundled") -> Trivet:
    """The demo's store with every memory in it, embedded. None of the user's settings apply to it."""
    # By words alone: what changed in it says so, and to read all pairs would take longer than all the rest.
    settings = Settings(path=str(path), embedder=embedder, background=False, changes="words")
    try:
        return _filled(settings, importing, embedding)
    except StoreError:
        _remove(path)  # it holds nothing but the demo, so making it anew is the best repair
        return _filled(settings, importing, embedding)


def _filled(settings: Settings, importing: Progress, embedding: Progress) -> Trivet:
    memory = Trivet.open(settings=settings)
    try:
        taken = memory.import_(lines(), progress=importing)
        memory.drain(progress=embedding)
        problems = [finding.detail for finding in memory.doctor() if not finding.ok]
        if taken.errors or taken.kept or problems:
            raise StoreError(f"The demo's store is not as it should be: {[*taken.errors, *problems][:1]}.")
    except BaseException:
        memory.close()
        raise
    return memory


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
