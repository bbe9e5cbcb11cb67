"""The asynchronous client: the same server, the same results, and nothing that holds up the event loop."""

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

from .between import Wire

Act = Callable[[AsyncTrivet], Awaitable[object]]


@pytest.fixture
def awaiting(between: Wire, key: str) -> Callable[[Act], object]:
    """Runs what a test does with an asynchronous client in an event loop of its own."""

    def run(act: Act) -> object:
        async def whole() -> object:
            async with AsyncTrivet.open(between.address, key=key) as memory:
                return await act(memory)

        return asyncio.run(whole())

    return run


def test_a_life(awaiting: Callable[[Act], object], trivet: Trivet) -> None:
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


def test_errors_come_when_it_is_awaited(awaiting: Callable[[Act], object]) -> None:
    async def act(memory: AsyncTrivet) -> None:
        asked: Coroutine[Any, Any, Memory] = memory.get("nonsense")
        with pytest.raises(InvalidInput, match="no start of one"):
            await asked
        with pytest.raises(InvalidInput, match="over HTTP"):
            await memory.backup("x.db")
        with pytest.raises(NotFound):
            await memory.get(new_id())

    awaiting(act)


def test_many_at_once(awaiting: Callable[[Act], object], trivet: Trivet) -> None:
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
        told: list[int] = []
        imported = await memory.import_(
            ['{"content": "zebra\u2028text"}', "broken"], progress=told.append
        )
        assert (imported.stored, len(imported.errors), sum(told)) == (1, 1, 2)
        assert [line async for line in memory.export()] == list(trivet.export())

    awaiting(act)


def test_a_lost_answer_writes_once(
    awaiting: Callable[[Act], object], between: Wire, trivet: Trivet
) -> None:
    async def act(memory: AsyncTrivet) -> None:
        between.lose_answers = 2
        stored = await memory.remember("zebra text")
        assert stored.status == "stored"

    awaiting(act)
    assert trivet.list().total == 1
    assert trivet.stats().revisions == 1


def test_a_call_that_is_given_up_leaves_the_client_usable(
    awaiting: Callable[[Act], object], between: Wire
) -> None:
    async def act(memory: AsyncTrivet) -> None:
        task = asyncio.ensure_future(memory.recall("zebra"))
        await asyncio.to_thread(between.asked.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await memory.list()).total == 0

    awaiting(act)


def test_losses_are_told(awaiting: Callable[[Act], object], between: Wire) -> None:
    async def act(memory: AsyncTrivet) -> None:
        between.lose_answers = 10
        with pytest.raises(StoreError, match="broke off"):
            await memory.recall("zebra")
        between.lose_answers = 10
        with pytest.raises(StoreError, match="not whole"):
            _ = [line async for line in memory.export()]
        with pytest.raises(StoreError, match="import it again"):
            await memory.import_(['{"content": "zebra"}'])

    awaiting(act)


def test_closed_or_without_a_key(address: str) -> None:
    async def act() -> None:
        memory = AsyncTrivet.open(address)
        with pytest.raises(Unauthorised, match="TRIVET_KEY"):
            await memory.stats()
        await memory.close()
        with pytest.raises(StoreError, match="closed"):
            await memory.stats()

    asyncio.run(act())
