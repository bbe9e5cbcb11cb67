"""A local store can be used through the async facade."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from trivet import AsyncTrivet, NotFound, StoreError


def opened(path: Path) -> AsyncTrivet:
    return AsyncTrivet.open(path, embedder="none", background=False)


def test_local_store_supports_async_calls(tmp_path: Path) -> None:
    async def act() -> None:
        async with opened(tmp_path / "memory.db") as memory:
            ids = await asyncio.gather(
                *(memory.remember(f"Fact number {number}.") for number in range(20))
            )
            assert (await memory.recall("fact number 7")).hits[0].content == "Fact number 7."
            await memory.remember_many([{"content": "One more."}])
            await memory.edit(ids[0].id, title="First")
            assert "First" in await memory.diff(ids[0].id, 1, 2)
            lines = [line async for line in memory.export()]
            assert len(lines) == 23  # header, one line per memory, trailer
            with pytest.raises(NotFound):
                await memory.get("ffffffff")
            assert memory.server is None
        async with opened(tmp_path / "copy.db") as copy:
            assert (await copy.import_(lines)).stored == 21

    asyncio.run(act())


def test_calls_do_not_block_event_loop(tmp_path: Path) -> None:
    async def act() -> None:
        async with opened(tmp_path / "memory.db") as memory:
            here, there = threading.current_thread(), []
            await memory.remember("A fact.")
            await memory.embed(progress=lambda done: there.append(threading.current_thread()))
            await memory.reindex(progress=lambda done: there.append(threading.current_thread()))
            await memory.import_(
                ["{}"], progress=lambda done: there.append(threading.current_thread())
            )
            assert there
            assert here not in there

    asyncio.run(act())


def test_closed_store_stays_closed_and_typo_creates_none(tmp_path: Path) -> None:
    async def act() -> None:
        memory = opened(tmp_path / "memory.db")
        await memory.stats()
        await memory.close()
        with pytest.raises(StoreError, match="closed"):
            await memory.stats()

    asyncio.run(act())
    with pytest.raises(StoreError, match="There is no store"):
        AsyncTrivet.open(str(tmp_path / "memry.db"), create=False)
