"""Lets laptops wait until something changes that concerns their user."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import msgspec

from trivet.serve.http.endpoint import ServerContext
from trivet.serve.http.neighbours import ANY, Neighbours
from trivet.types import Caller

# What others write into the same store is noticed so late; what comes through a process of this server, at once.
LOOK_SECONDS = 120.0
# Of so many tenants it is remembered how far they were looked at. Whoever is forgotten is looked at anew.
TENANTS_KEPT = 1_000
ALL = "*"


class Seen(msgspec.Struct, frozen=True):
    """As far as a tenant was looked at: its record of changes, its numbers, and what concerned each user last."""

    change: int
    seq: int
    since: int  # what came before was for everybody
    concerned: Mapping[str, int]

    def of(self, user: str) -> str:
        return str(max(self.since, self.concerned.get(user, 0), self.concerned.get(ALL, 0)))


class _Tenant:
    def __init__(self) -> None:
        self.waiting: dict[asyncio.Event, Caller] = {}
        self.seen: Seen | None = None
        self.looked = 0.0
        self.looking = asyncio.Lock()

    def wake(self, before: Seen | None) -> None:
        for event, caller in self.waiting.items():
            if before is None or self.seen is None or before.of(caller.user) != self.seen.of(caller.user):
                event.set()


class News:
    """One look at the store serves all laptops of a tenant that wait."""

    def __init__(self, context: ServerContext, neighbours: Neighbours) -> None:
        self._context = context
        self._neighbours = neighbours
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = False

    async def after(self, caller: Caller, known: str, seconds: float) -> str:
        """What a laptop of this user must know next, as soon as that is another than `known`."""
        tenant, loop, event = self._tenant(caller.tenant), asyncio.get_running_loop(), asyncio.Event()
        until = loop.time() + seconds
        tenant.waiting[event] = caller
        try:
            latest = await self._look(tenant, caller)
            while not self._ended and latest == known and (left := until - loop.time()) > 0:
                try:
                    await asyncio.wait_for(event.wait(), min(left, LOOK_SECONDS))
                except TimeoutError:
                    if left > LOOK_SECONDS and loop.time() - tenant.looked >= LOOK_SECONDS / 2:
                        await self._look(tenant, caller)
                event.clear()
                latest = tenant.seen.of(caller.user) if tenant.seen else latest
            return latest
        finally:
            del tenant.waiting[event]

    def end(self) -> None:
        """The server is about to end: those who wait are answered."""
        self._ended = True
        for tenant in self._tenants.values():
            for event in tenant.waiting:
                event.set()

    def written(self, caller: Caller) -> None:
        """After a request that may have written."""
        self._neighbours.tell(caller.tenant)
        self.heard(caller.tenant)

    def heard(self, name: str) -> None:
        """A tenant may have been written to, by this process or by another one of the server."""
        for tenant in self._tenants.values() if name == ANY else (self._tenants.get(name),):
            if tenant is not None and tenant.waiting:
                task = asyncio.ensure_future(self._look(tenant, next(iter(tenant.waiting.values()))))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _tenant(self, name: str) -> _Tenant:
        tenant = self._tenants.setdefault(name, _Tenant())
        self._tenants.move_to_end(name)
        for other in list(self._tenants)[: max(0, len(self._tenants) - TENANTS_KEPT)]:
            if not self._tenants[other].waiting:
                del self._tenants[other]
        return tenant

    async def _look(self, tenant: _Tenant, caller: Caller) -> str:
        """One at a time: who comes while another looks finds little to do."""
        async with tenant.looking:
            before = tenant.seen
            tenant.seen = await self._context.pool.run(lambda: self._read(caller, before), "door")
            tenant.looked = asyncio.get_running_loop().time()
            if tenant.seen != before:
                tenant.wake(before)
            return tenant.seen.of(caller.user)

    def _read(self, caller: Caller, before: Seen | None) -> Seen:
        """A read of one number where nothing changed."""
        from trivet.sync.server import caught_up

        with self._context.tenants.using(caller) as memory:
            feed = memory.engine.store.feed
            change = feed.last_change()
            if before is not None and change == before.change:
                return before
            state = caught_up(memory.engine)
            if before is None or state.unfinished or state.seq < before.seq:
                return Seen(change, state.seq, state.seq, {})
            with feed.snapshot() as connection:
                concerned = feed.concerned(connection, before.seq)
            if concerned is None:
                return Seen(change, state.seq, state.seq, {})
            return Seen(change, state.seq, before.since, {**before.concerned, **concerned})
