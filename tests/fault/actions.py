"""Actions of the processes that the fault tests kill.

Each reports through a pipe only what it has completed.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from support.waiting import heard
from trivet import StoreError, Trivet
from trivet.common.ids import new_id

# (what, id, words, state): "will" before the call, "did" after it returned.
Told = tuple[str, str, str, str]


def open_store(path: str, embedder: str = "none", background: bool = False) -> Trivet:
    return Trivet.open(path, embedder=embedder, background=background, busy_time_limit_ms=60_000)


def words(name: str, number: int) -> str:
    """Return words that no other memory has, so each can be searched alone.

    They are letters only, because the analyzer splits off digits.
    """
    code = f"{name}z{number}z".translate(_LETTERS)
    return f"{code}aq {code}eq {code}oq"


_LETTERS = str.maketrans("0123456789", "bcdfghjklm")


def write_until_killed(path: str, embedder: str, name: str, seed: int, tell: Connection) -> None:
    """Remember, edit and forget until killed, with the worker in the background."""
    random = Random(seed)
    mine: list[str] = []
    with open_store(path, embedder, background=True) as trivet:
        number = 0
        while True:
            number += 1
            said = words(name, number)
            act = random.choice(("remember", "remember", "edit", "forget")) if mine else "remember"
            id = new_id() if act == "remember" else random.choice(mine)
            state = "deleted" if act == "forget" else "active"
            tell.send(("will", id, said, state))
            if act == "remember":
                trivet.remember(said, id=id)
                mine.append(id)
            elif act == "edit":
                trivet.edit(id, content=said)
            else:
                trivet.forget(id)
                mine.remove(id)
            tell.send(("did", id, said, state))


def open_first(path: str, tell: Connection) -> None:
    tell.send("ready")
    with open_store(path) as trivet:
        tell.send(trivet.remember("the very first words").id)


def drain(path: str, embedder: str, tell: Connection) -> None:
    with open_store(path, embedder) as trivet:
        tell.send(0)
        trivet.drain(progress=tell.send)


def measure(folder: str, embedder: str, texts: list[str], tell: Connection) -> None:
    """Run a lab measurement that loads its dataset."""
    tell.send(0)
    with measured(folder, embedder, texts):
        tell.send("done")


def measured(folder: str, embedder: str, texts: list[str]) -> Any:
    from trivet.lab.datasets.dataset import Dataset, Document
    from trivet.lab.measure.bench import open_bench

    documents = tuple(Document(id=f"d{place}", text=text) for place, text in enumerate(texts))
    return open_bench(
        Dataset(name="killed", documents=documents, queries=(), judgements=()),
        Path(folder),
        embedder,
    )


def reindex(path: str, embedder: str, tell: Connection) -> None:
    with open_store(path, embedder) as trivet:
        tell.send(0)
        trivet.reindex(progress=tell.send)


def import_lines(path: str, lines: list[str], tell: Connection) -> None:
    with open_store(path) as trivet:
        tell.send(0)
        trivet.import_(lines, progress=tell.send)


def back_up(path: str, target: str, tell: Connection) -> None:
    with open_store(path) as trivet:
        tell.send(0)
        trivet.backup(target)
        tell.send(1)


def write_on_a_full_disk(path: str, most_bytes: int, tell: Connection) -> None:
    """Limit the size of this process's files, which acts like a full disk."""
    trivet = open_store(path)
    kept = _until_refused(
        most_bytes, lambda number: trivet.remember(words("full", number) + " filler" * 200).id
    )
    tell.send(kept)
    tell.send(trivet.remember("room again").id)
    trivet.close()


def open_on_a_full_disk(path: str, most_bytes: int, tell: Connection) -> None:
    def first_words(_: int) -> str:
        with open_store(path) as trivet:
            return trivet.remember("the very first words").id

    tell.send(_until_refused(most_bytes, first_words))
    tell.send(first_words(0))


def import_on_a_full_disk(path: str, lines: list[str], most_bytes: int, tell: Connection) -> None:
    trivet = open_store(path)
    tell.send(_until_refused(most_bytes, lambda _: ",".join(trivet.import_(lines).errors)))
    report = trivet.import_(lines)
    tell.send((report.stored, report.unchanged, report.errors))
    trivet.close()


def _until_refused(most_bytes: int, act: Callable[[int], str]) -> tuple[list[str], str]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    done: list[str] = []
    try:
        for number in range(2_000):
            done.append(act(number))
    except StoreError as error:
        return done, str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    return done, "it was never refused"


def write_and_recall(path: str, name: str, count: int, tell: Connection) -> None:
    """Check that this process finds each write at once, then send the ids or the error."""
    tell.send("ready")
    heard(tell)
    ids: list[str] = []
    try:
        with open_store(path) as trivet:
            for number in range(count):
                said = words(name, number)
                ids.append(trivet.remember(said).id)
                found = [hit.id for hit in trivet.recall(said).hits]
                if found != [ids[-1]]:
                    raise AssertionError(f"{said!r} was written as {ids[-1]} and found as {found}")
                if number % 5 == 4:
                    trivet.edit(ids[-2], content=words(f"{name}edited", number - 1))
    except BaseException as error:  # noqa: BLE001 - the test reads the error from the pipe
        tell.send(f"{type(error).__name__}: {error}")
    else:
        tell.send(ids)


def memories(path: Path, count: int) -> list[str]:
    return copied(path, tuple(words("m", number) for number in range(count)))


def copied(path: Path, texts: tuple[str, ...]) -> list[str]:
    """Copy a store of these memories to the path and return their ids.

    The store is built once, because many tests start with it.
    """
    content, ids = _made(texts)
    path.touch(0o600)  # stores are created for their owner alone
    path.write_bytes(content)
    return list(ids)


@cache
def _made(texts: tuple[str, ...]) -> tuple[bytes, tuple[str, ...]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with open_store(str(path)) as trivet:
            stored = trivet.remember_many({"content": text} for text in texts)
        assert [file.name for file in path.parent.iterdir()] == [path.name], (
            "a closed store is one file"
        )
        return path.read_bytes(), tuple(one.id for one in stored)


def received(connection: Connection) -> list[Any]:
    """Return everything sent before the other end closed or died."""
    told = []
    try:
        while True:
            told.append(heard(connection))
    except (EOFError, ConnectionError):
        return told
