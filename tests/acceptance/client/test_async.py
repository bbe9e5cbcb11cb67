"""The async client gets the same results from the same server and never blocks the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, assert_type

import pytest

from trivet import (
    Answer,
    AsyncTrivet,
    InvalidInput,
    Memory,
    NotFound,
    Remembered,
    StoreError,
    Trivet,
    Unauthorised,
)
from trivet.common.ids import new_id

from .tcp_proxy import TcpProxy

Act = Callable[[AsyncTrivet], Awaitable[object]]


@pytest.fixture
def awaiting(network: TcpProxy, key: str) -> Callable[[Act], object]:
    """Run an async test function with a client in its own event loop."""

    def run(act: Act) -> object:
        async def whole() -> object:
            async with AsyncTrivet.open(network.address, key=key) as memory:
                return await act(memory)

        return asyncio.run(whole())

    return run


def test_memory_life_cycle(awaiting: Callable[[Act], object], trivet: Trivet) -> None:
    async def act(memory: AsyncTrivet) -> None:
        stored = await memory.remember(
            "The relay listens on port 7001.", tags=["net"], importance=0.9
        )
        assert_type(stored, Remembered)
        answer = await memory.recall("relay", tags=["net"], limit=3)
        assert_type(answer, Answer)
        assert [hit.id for hit in answer.hits] == [stored.id]
        edited = await memory.edit(stored.id, content="The relay moved.", title=None)
        assert_type(edited, Memory)
        assert (await memory.get(stored.id)) == edited == trivet.get(stored.id)
        assert "+The relay moved." in await memory.diff(stored.id, 1, 2)
        other, *_ = await memory.remember_many([{"content": "The relay is new."}])
        await memory.link(other.id, "supersedes", stored.id)
        assert [link.target for link in await memory.links(other.id)] == [stored.id]
        assert (await memory.list(state=["superseded"])).total == 1
        assert await memory.tags() == trivet.tags()
        assert await memory.categories() == trivet.categories()
        assert (await memory.why_not("relay", other.id)).returned
        assert (await memory.forget(other.id)).state == "deleted"
        await memory.purge(other.id)
        with pytest.raises(NotFound):
            await memory.get(other.id)

    awaiting(act)


def test_errors_are_raised_on_await(awaiting: Callable[[Act], object]) -> None:
    async def act(memory: AsyncTrivet) -> None:
        pending: Coroutine[Any, Any, Memory] = memory.get("nonsense")
        with pytest.raises(InvalidInput, match="is not an id or the start of one"):
            await pending
        with pytest.raises(InvalidInput, match="over HTTP"):
            await memory.backup("x.db")
        with pytest.raises(NotFound):
            await memory.get(new_id())

    awaiting(act)


def test_concurrent_calls(awaiting: Callable[[Act], object], trivet: Trivet) -> None:
    async def act(memory: AsyncTrivet) -> None:
        stored = await asyncio.gather(
            *(memory.remember(f"zebra number{number}") for number in range(20))
        )
        answers = await asyncio.gather(*(memory.recall(f"number{number}") for number in range(20)))
        assert [answer.hits[0].id for answer in answers] == [one.id for one in stored]

    awaiting(act)
    assert trivet.list().total == 20


def test_streams(awaiting: Callable[[Act], object], trivet: Trivet) -> None:
    async def act(memory: AsyncTrivet) -> None:
        reported: list[int] = []
        imported = await memory.import_(
            ['{"content": "zebra\u2028text"}', "broken"], progress=reported.append
        )
        assert (imported.stored, len(imported.errors), sum(reported)) == (1, 1, 2)
        assert [line async for line in memory.export()] == list(trivet.export())

    awaiting(act)


def test_lost_answer_writes_once(
    awaiting: Callable[[Act], object], network: TcpProxy, trivet: Trivet
) -> None:
    async def act(memory: AsyncTrivet) -> None:
        network.lose_answers = 2
        stored = await memory.remember("zebra text")
        assert stored.status == "stored"

    awaiting(act)
    assert trivet.list().total == 1
    assert trivet.stats().revisions == 1


def test_canceled_call_leaves_the_client_usable(
    awaiting: Callable[[Act], object], network: TcpProxy
) -> None:
    async def act(memory: AsyncTrivet) -> None:
        task = asyncio.ensure_future(memory.recall("zebra"))
        await asyncio.to_thread(network.asked.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await memory.list()).total == 0

    awaiting(act)


def test_losses_are_reported(awaiting: Callable[[Act], object], network: TcpProxy) -> None:
    async def act(memory: AsyncTrivet) -> None:
        network.lose_answers = 10
        with pytest.raises(StoreError, match="was lost"):
            await memory.recall("zebra")
        network.lose_answers = 10
        with pytest.raises(StoreError, match="incomplete"):
            _ = [line async for line in memory.export()]
        with pytest.raises(StoreError, match="Import again"):
            await memory.import_(['{"content": "zebra"}'])

    awaiting(act)


def test_closed_client_or_missing_key(address: str) -> None:
    async def act() -> None:
        memory = AsyncTrivet.open(address)
        with pytest.raises(Unauthorised, match="TRIVET_KEY"):
            await memory.stats()
        await memory.close()
        with pytest.raises(StoreError, match="closed"):
            await memory.stats()

    asyncio.run(act())
