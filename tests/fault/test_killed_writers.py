"""Concurrent writers on one file that are killed at random never lose an acknowledged write."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

from support.waiting import ended, heard
from support.word_embedder import WordEmbedder
from trivet import Trivet
from trivet.store.sqlite.store import SqliteStore

from .actions import Told, open_store, received, write_until_killed
from .conftest import Start, Started

ROUNDS = 8
WRITERS = 3
Said = tuple[str, str]


def test_no_acknowledged_write_is_lost(start: Start, path: Path, embedder: WordEmbedder) -> None:
    random = Random(20260301)
    acknowledged: dict[str, Said] = {}
    intended: dict[str, Said] = {}
    for turn in range(ROUNDS):
        names = [f"r{turn}w{writer}" for writer in range(WRITERS)]
        started = [
            start(write_until_killed, str(path), embedder.spec(), name, random.randrange(1_000_000))
            for name in names
        ]
        for told in killed_after(started, [random.randint(3, 40) for _ in started]):
            for what, id, words, state in told:
                (acknowledged if what == "did" else intended)[id] = (words, state)
        with open_store(str(path)) as trivet:
            check(trivet, acknowledged, intended)
    assert len(acknowledged) > ROUNDS * WRITERS
    with open_store(str(path), embedder.spec()) as trivet:
        check_vectors(trivet, path)


def killed_after(started: list[Started], counts: list[int]) -> list[list[Told]]:
    """Read each writer's reports, kill it after its count, and read the rest of the pipe."""
    told: list[list[Told]] = [[] for _ in started]

    def follow(place: int) -> None:
        process, pipe = started[place]
        told[place] += [heard(pipe) for _ in range(counts[place])]
        process.kill()
        ended(process)
        told[place] += received(pipe)

    threads = [threading.Thread(target=follow, args=(place,)) for place in range(len(started))]
    for thread in threads:
        thread.start()
    for thread in threads:
        ended(thread)
    return told


def check(trivet: Trivet, acknowledged: dict[str, Said], intended: dict[str, Said]) -> None:
    """Check that interrupted writes are whole or absent and all other writes are present."""
    assert [finding for finding in trivet.doctor() if not finding.ok] == []
    everywhere = trivet.list(limit=1_000, state=["active", "deleted"])
    memories = {memory.id: memory for memory in everywhere.memories}
    assert everywhere.total == len(memories)
    assert set(acknowledged) <= set(memories) <= set(intended)
    for id, memory in memories.items():
        allowed = [one[id] for one in (acknowledged, intended) if id in one]
        living = memory.state == "active"
        assert any(
            memory.state == state and (not living or memory.content == words)
            for words, state in allowed
        )
        # Quoted, because unquoted words of a deleted memory also match others with one letter
        # changed.
        found = [
            hit.id for hit in trivet.recall(f'"{memory.content}"', recipe="legs(lexical)").hits
        ]
        assert found == ([id] if living else [])
        assert trivet.history(id)[-1].memory == memory
        if living:
            acknowledged[id] = (memory.content, "active")
        else:
            acknowledged[id] = intended[id] = ("", "deleted")


def check_vectors(trivet: Trivet, path: Path) -> None:
    store = SqliteStore(path)
    store.jobs.retry_now()  # what a killed worker had leased
    store.close()
    trivet.drain()
    assert trivet.stats().not_embedded == 0
    assert [finding for finding in trivet.doctor() if not finding.ok] == []
    for memory in trivet.list(limit=1_000).memories:
        best = trivet.recall(memory.content, recipe="legs(dense)", limit=1).hits[0]
        assert best.id == memory.id
