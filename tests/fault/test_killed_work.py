"""Opening, embedding, rebuilding, importing and backing up can each be killed midway."""

from __future__ import annotations

import json
from multiprocessing.connection import wait
from pathlib import Path
from random import Random
from typing import Any

from support.waiting import ended, happened, heard
from support.word_embedder import WordEmbedder
from trivet import Trivet
from trivet.store.sqlite.store import SqliteStore

from .actions import (
    back_up,
    drain,
    import_lines,
    measure,
    measured,
    memories,
    open_first,
    open_store,
    received,
    reindex,
    words,
)
from .conftest import Start, Started


def kill(started: Started, after: int, within_seconds: float) -> list[Any]:
    """Kill a process shortly after this many reports, unless it finishes first."""
    process, pipe = started
    told = []
    for _ in range(after):
        try:
            told.append(heard(pipe))
        except EOFError:
            break
    wait([process.sentinel], timeout=within_seconds)
    process.kill()
    ended(process)
    return told + received(pipe)


def problems(trivet: Trivet) -> list[str]:
    return [f"{finding.check}: {finding.detail}" for finding in trivet.doctor() if not finding.ok]


def test_killed_while_creating_the_store(start: Start, tmp_path: Path) -> None:
    random = Random(1)
    finished = 0
    for turn in range(25):
        path = tmp_path / f"{turn}.db"
        told = kill(start(open_first, str(path)), 1, random.uniform(0, 0.03))
        with open_store(str(path)) as trivet:
            assert problems(trivet) == []
            if len(told) == 2:
                finished += 1
                assert trivet.get(told[1]).content == "the very first words"
            trivet.remember("life goes on here")
            assert trivet.recall("life goes on").hits[0].content == "life goes on here"
    assert finished < 25, "every process finished before the kill"


def test_killed_while_embedding(start: Start, path: Path, embedder: WordEmbedder) -> None:
    random = Random(2)
    ids = memories(path, 200)
    for turn in range(4):
        told = kill(start(drain, str(path), embedder.spec()), turn, random.uniform(0, 0.02))
        with open_store(str(path), embedder.spec()) as trivet:
            assert problems(trivet) == []
            assert trivet.stats().passages >= sum(told)
    finish(path, embedder, ids)


def test_lab_run_takes_over_from_one_killed_while_embedding(
    start: Start, tmp_path: Path, embedder: WordEmbedder
) -> None:
    texts = [words("m", number) for number in range(80)]
    run = (str(tmp_path), f"{embedder.spec()}#dimensions={embedder.dimension}", texts)
    embedder.answering.clear()
    process, _ = start(measure, *run)
    happened(embedder.asked)  # for vectors of what it has leased
    process.kill()
    ended(process)
    embedder.answering.set()
    (file,) = tmp_path.glob("*.db")
    with open_store(str(file), run[1]) as trivet:
        (model,) = trivet.engine.embedding.models()
        due = trivet.engine.store.jobs.lease(model, 100, 0)
        assert len(due) < len(texts), "nothing was leased when it was killed"
    with measured(*run) as bench:
        assert (bench.trivet.stats().not_embedded, bench.trivet.stats().passages) == (0, len(texts))


def test_killed_while_rebuilding(start: Start, path: Path, embedder: WordEmbedder) -> None:
    random = Random(3)
    ids = memories(path, 200)
    with open_store(str(path), embedder.spec()) as trivet:
        trivet.drain()
    for turn in range(6):
        kill(start(reindex, str(path), embedder.spec()), 1 + turn // 2, random.uniform(0, 0.05))
        with open_store(str(path), embedder.spec()) as trivet:
            assert problems(trivet) == []
            assert trivet.stats().passages == len(ids), (
                "the old vectors stay until they are replaced"
            )
            for number in (0, 99, 199):
                assert trivet.recall(words("m", number)).hits[0].id == ids[number]
    finish(path, embedder, ids)


def finish(path: Path, embedder: WordEmbedder, ids: list[str]) -> None:
    """Finish the work as the next process would and check that both legs find every memory."""
    store = SqliteStore(path)
    store.jobs.retry_now()  # what a killed worker had leased
    store.close()
    with open_store(str(path), embedder.spec()) as trivet:
        trivet.drain()
        assert problems(trivet) == []
        assert (trivet.stats().not_embedded, trivet.stats().passages) == (0, len(ids))
        for number, id in enumerate(ids):
            for leg in ("lexical", "dense"):
                hits = trivet.recall(words("m", number), recipe=f"legs({leg})", limit=1).hits
                assert [hit.id for hit in hits] == [id]


def test_killed_while_importing(start: Start, path: Path, tmp_path: Path) -> None:
    random = Random(4)
    ids = memories(path, 500)
    with open_store(str(path)) as trivet:
        for number, id in enumerate(ids[:100]):
            trivet.edit(id, content=f"{words('m', number)} edited")
        for one, other in zip(ids[:100:2], ids[1:100:2], strict=True):
            trivet.link(one, "supersedes", other)
        lines = list(trivet.export())
    for turn in range(5):
        target = tmp_path / f"target{turn}.db"
        kill(
            start(import_lines, str(target), lines),
            random.randint(1, len(lines)),
            random.uniform(0, 0.05),
        )
        with open_store(str(target)) as trivet:
            assert problems(trivet) == []
            report = trivet.import_(lines)
            assert report.errors == ()
            assert report.stored + report.unchanged == len(ids)
            assert problems(trivet) == []
            assert in_any_order(trivet.export()) == in_any_order(lines)


def in_any_order(lines: Any) -> list[str]:
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines)


def test_killed_while_backing_up(start: Start, path: Path, tmp_path: Path) -> None:
    random = Random(5)
    ids = memories(path, 1_500)
    whole = 0
    for turn in range(10):
        target = tmp_path / f"copy{turn}.db"
        told = kill(start(back_up, str(path), str(target)), 1, random.uniform(0, 0.02))
        assert target.exists() or len(told) == 1
        if not target.exists():
            with open_store(str(path)) as trivet:
                trivet.backup(target)
        else:
            whole += 1
        with open_store(str(target)) as copy:
            assert problems(copy) == []
            assert copy.list().total == len(ids)
    assert whole < 10, "every process finished before the kill"
