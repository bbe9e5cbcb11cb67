"""Fixtures of the lab's tests: stores to tune, runs to judge, and arms made by real commands."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from support.small_dataset import write
from trivet import Trivet
from trivet.cli.demonstration import lines
from trivet.lab.tune.search import SearchSpace
from trivet.settings import Settings, config_path

CANARY = "zebrafinch"
DOCUMENTS, QUERIES = 30, 6
SMALL = SearchSpace(
    norms=("zscore",),
    dense_weights=(0.3, 0.7),
    spread_dense_weights=(5,),
    graph_weights=(0, 8),
    ks=(60,),
    rrf_dense_weights=(0.5,),
    bs=(0.75,),
    depths=(50,),
    bonuses=(),
)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 80 demo memories, three sensitive ones and one superseded one."""
    path = tmp_path_factory.mktemp("filled") / "memory.db"
    with Trivet.open(settings=Settings(path=str(path), background=False, changes="off")) as memory:
        assert not memory.import_(islice(lines(), 80)).errors
        for number in range(3):
            memory.remember(
                f"The {CANARY} password number {number} opens the vault door.", sensitive=True
            )
        memory.drain()
    return path


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Path:
    shutil.copytree(filled.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / filled.name


@pytest.fixture
def memory(store: Path) -> Iterator[Trivet]:
    with Trivet.open(settings=Settings(path=str(store), background=False, changes="off")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's settings file, in the test's own home."""
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "home" / name.lower()))
    return config_path()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of thirty documents, six queries and one judgment.

    Document d0 holds terminal codes and d1 a secret.
    """
    corpus: list[dict[str, Any]] = [
        {"id": f"d{n}", "text": f"Document number {n}."} for n in range(DOCUMENTS)
    ]
    corpus[0] |= {"text": "Clear\x1b[2J the \u202escreen", "title": "A \x07bell"}
    corpus[1] |= {"text": f"The {CANARY} is secret.", "sensitive": True}
    queries = [{"id": f"q{n}", "text": f"Question {n}?"} for n in range(QUERIES)]
    return write(tmp_path / "data", corpus=corpus, queries=queries, qrels="q0\td0\t1\nq5\td29\t2\n")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two arms that agree in part."""
    for name, shift in (("1-default", 0), ("2-rrf-k-60", 3)):
        rows = [
            f"q{query} Q0 d{(query + shift + rank) % DOCUMENTS} {rank + 1} {100 - rank:.3f} trivet"
            for query in range(QUERIES)
            for rank in range(8)
        ]
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.trec").write_text("\n".join(rows) + "\n")
    return tmp_path / "runs"
