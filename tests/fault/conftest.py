from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

import pytest

from support.notes import vault, write
from support.store_fixtures import configuration, open_trivet, trivet
from support.triples_model import held
from support.waiting import ended
from support.word_embedder import WordEmbedder

__all__ = ["configuration", "held", "open_trivet", "trivet", "vault", "write"]

Started = tuple[ForkServerProcess, Connection]
Start = Callable[..., Started]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start an action of actions.py in its own process and return it with its pipe."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [
            "pytest",
            "trivet.trivet",
            "trivet.memory.recall",
            "trivet.memory.admin.importer",
            "fault.actions",
        ]
    )
    running: list[Started] = []

    def start_it(act: Callable[..., None], *arguments: Any) -> Started:
        ours, theirs = context.Pipe()
        process = context.Process(target=act, args=(*arguments, theirs), daemon=True)
        process.start()
        theirs.close()
        running.append((process, ours))
        return process, ours

    yield start_it
    for process, pipe in running:
        process.kill()
        ended(process)
        process.close()
        pipe.close()


@pytest.fixture
def embedder() -> Iterator[WordEmbedder]:
    server = WordEmbedder()
    yield server
    server.stop()
