"""A folder of notes and the memory that ingests them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy

import pytest

from trivet import Trivet
from trivet.sources.files import Ingested, ingest
from trivet.types import Memory

Write = Callable[[str, str], Path]
Take = Callable[..., Ingested]
# Old enough that a file's time tells whether it has changed.
OLD = 1_700_000_000


@pytest.fixture
def memory(path: Path, empty_store: Path) -> Iterator[Trivet]:
    copy(empty_store, path)
    with Trivet.open(path, embedder="none", background=False) as trivet:
        yield trivet


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
def write(vault: Path) -> Write:
    moments = iter(range(OLD, OLD + 10_000))

    def written(name: str, text: str) -> Path:
        file = vault / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        moment = next(moments)
        os.utime(file, (moment, moment))
        return file

    return written


@pytest.fixture
def take(memory: Trivet, vault: Path) -> Take:
    def taken(where: Path | None = None, **options: object) -> Ingested:
        return ingest(memory, where or vault, **options)  # type: ignore[arg-type]

    return taken


def everything(memory: Trivet) -> dict[str, Memory]:
    """Return active memories by their content."""
    page = memory.list(limit=1000, reveal=True)
    assert page.total <= 1000
    return {one.content: one for one in page.memories}
