"""Open stores of a server, one per tenant, opened by the first request and closed when idle.

With several PostgreSQL databases (cells), a moved tenant's row in its old cell names the new one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from trivet.errors import Moved, Moving, StoreError
from trivet.memory.admin.accounts import authenticate, make_key, recheck_caller, tenant_in_key
from trivet.memory.engine import Shared, open_engine
from trivet.memory.open_store import check_tenant, tenant_file
from trivet.search.concurrency import RecallLoad
from trivet.settings import Settings
from trivet.settings.locations import database_of
from trivet.store.relational.database import MOVING_FOR_USERS
from trivet.store.servers import DatabaseServer, TenantState, open_server
from trivet.trivet import Trivet
from trivet.types import Caller, Filter, Right, Role

logger = logging.getLogger("trivet.serve.http")

# More steps mean a cycle, which a move in progress can cause.
MAX_HOPS = 8
# Seconds before an unreachable cell is tried again: each attempt blocks a thread.
CELL_RETRY_SECONDS = 5.0

UNKNOWN_CELL = (
    "The tenant is in a database that the server does not know. Add it to the setting `cells`."
)
UNREACHABLE = "The tenant's database cannot be reached right now. Nothing was done; try again."
TENANT_MOVING = "The tenant is being moved. Nothing was done; try again in a moment."


class TenantLocator:
    def __init__(self, settings: Settings, first: DatabaseServer) -> None:
        self._settings = settings
        self._first = first
        self._open: dict[str, DatabaseServer] = {settings.path: first}
        self._failed: dict[str, float] = {}
        self._lock = threading.Lock()

    def of(self, tenant: str) -> DatabaseServer | None:
        """Return the tenant's database, or None if no cell knows it."""
        here: DatabaseServer = self._first
        by: TenantState | None = None  # state in the previous cell
        for _ in range(MAX_HOPS):
            standing = here.standing(tenant)
            if standing is None:
                asks = here is self._first and tenant != self._settings.tenant
                listed = self._first.listed(tenant) if asks else None
                if listed is None or listed[0] == here.cell:
                    return None
                here = self._cell(*listed)
            elif standing.standing in ("home", "frozen"):
                return here
            elif standing.standing == "arriving" and by is not None and by.move == standing.move:
                here.activate(tenant, standing.move)  # the move was interrupted after the switch
                return here
            else:
                by = standing if standing.standing == "moved" else None
                here = self._cell(standing.cell, standing.address)
        raise Moving(TENANT_MOVING)

    def names(self) -> list[str]:
        return [
            one for server in tuple(self._open.values()) for one in (server.name, server.address)
        ]

    def close(self) -> None:
        """Close all databases but the first, which the caller owns."""
        with self._lock:
            for server in self._open.values():
                if server is not self._first:
                    server.close()
            self._open = {self._settings.path: self._first}

    def _cell(self, cell: str, address: str) -> DatabaseServer:
        """Return a cell named in the settings: no database row sends the server elsewhere."""
        for server in tuple(self._open.values()):
            if server.cell == cell:
                return server
        with self._lock:  # others that wait here also need a cell that is not open yet
            for url in self._settings.cells:
                opened = self._open.get(url) or self._opened(url)
                if opened is not None and opened.cell == cell:
                    return opened
            if self._failed:
                raise StoreError(UNREACHABLE)
        logger.error("A tenant is in %s, which the setting `cells` does not list.", address)
        raise StoreError(UNKNOWN_CELL)

    def _opened(self, url: str) -> DatabaseServer | None:
        if time.monotonic() < self._failed.get(url, 0.0):
            return None
        settings = msgspec.structs.replace(self._settings, path=url, replica_urls=())
        kind = database_of(url)
        try:
            if kind is None:
                raise StoreError(
                    "an entry of the setting `cells` is not the address of a PostgreSQL database"
                )
            self._open[url] = open_server(settings, kind)
        except StoreError as error:
            logger.error("A cell cannot be opened: %s", error)
            self._failed[url] = time.monotonic() + CELL_RETRY_SECONDS
            return None
        self._failed.pop(url, None)
        return self._open[url]


TENANT_IDLE_SECONDS = 900.0
# Each has threads, file descriptors, vectors and caches.
MAX_OPEN_TENANTS = 32


class _OpenTenant(msgspec.Struct):
    trivet: Trivet
    used: float
    users: int = 0  # callers using it now; it stays open until they are done
    left: bool = False  # the tenant has moved; no new caller gets this store


class Tenants:
    def __init__(
        self, settings: Settings, shared: Shared | None = None, processes: int = 1
    ) -> None:
        """Open the first tenant.

        The caller closes the models in `shared`; `processes` counts the server's workers.
        """
        check_tenant(settings.tenant)
        self._settings = settings
        self._shared_is_external = shared is not None
        self._shared = shared or Shared.of(settings, processes)
        self._homes = TenantLocator(settings, self._shared.server) if self._shared.server else None
        self._tenants: dict[str, _OpenTenant] = {}
        self._opening_locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._first_tenant()  # a store that cannot be opened stops the server at startup

    @property
    def load(self) -> RecallLoad:
        return self._shared.load

    def caller(self, key: str) -> Caller:
        """Return the caller; unknown keys and unknown tenants raise the same error."""
        tenant = tenant_in_key(key)
        with self._hiding_locations():
            if tenant is None or not self._exists(tenant):
                return authenticate(
                    self._first_tenant().engine.store, self._settings.tenant, key, is_here=False
                )
            try:
                with self._leased(tenant) as trivet:
                    return authenticate(trivet.engine.store, tenant, key)
            except Moved:  # the second attempt follows the move
                with self._leased(tenant) as trivet:
                    return authenticate(trivet.engine.store, tenant, key)

    @contextmanager
    def using(self, caller: Caller) -> Iterator[Trivet]:
        with self._hiding_locations(), self._leased(caller.tenant) as trivet:
            yield trivet.acting_as(caller)

    def trivet(self, caller: Caller) -> Trivet:
        """Return the caller's memory, which may close when other tenants open."""
        with self.using(caller) as memory:
            return memory

    def recheck_caller(self, caller: Caller) -> None:
        with self._hiding_locations(), self._leased(caller.tenant) as trivet:
            recheck_caller(trivet.engine.store, caller)

    def make_key(
        self,
        user: str,
        role: Role,
        rights: Sequence[Right] | None = None,
        label: str = "",
        expires_at: str | None = None,
    ) -> str:
        store = self._first_tenant().engine.store
        if not store.accounts.has(user):
            store.accounts.add_user(user, role)
        return make_key(store, self._settings.tenant, user, rights, label, expires_at).text

    def has_users(self) -> bool:
        return bool(self._first_tenant().engine.store.accounts.users())

    def check(self) -> None:
        with self._hiding_locations():
            self._first_tenant().engine.store.memories.page(Filter(), "recency", 1, 0)

    def close(self) -> None:
        with self._lock:
            tenants, self._tenants = list(self._tenants.values()), {}
        for tenant in tenants:
            tenant.trivet.close()
        if self._homes:
            self._homes.close()
        if not self._shared_is_external:
            self._shared.close()

    @contextmanager
    def _hiding_locations(self) -> Iterator[None]:
        try:
            yield
        except (Moved, Moving) as error:
            raise type(error)(MOVING_FOR_USERS) from error
        except StoreError as error:
            message = str(error)
            for place in (
                self._homes.names() if self._homes else (str(one) for one in self._files())
            ):
                message = message.replace(place, "the server's store")
            raise type(error)(message) from error

    def _files(self) -> list[Path]:
        return [
            tenant_file(self._settings_for(tenant))
            for tenant in {*self._tenants, self._settings.tenant}
        ]

    def _first_tenant(self) -> Trivet:
        with self._leased(self._settings.tenant) as trivet:
            return trivet

    def _exists(self, tenant: str) -> bool:
        if tenant in self._tenants:
            return True
        if self._homes:
            return self._homes.of(tenant) is not None
        return tenant_file(self._settings_for(tenant)).exists()

    def _settings_for(self, tenant: str) -> Settings:
        return msgspec.structs.replace(self._settings, tenant=tenant)

    @contextmanager
    def _leased(self, tenant: str) -> Iterator[Trivet]:
        """Lease the store; after a move, drop it so that the next caller finds the new one."""
        one = self._acquired(tenant)
        try:
            yield one.trivet
        except Moved:
            with self._lock:
                one.left = True
                if self._tenants.get(tenant) is one:
                    del self._tenants[tenant]
            raise
        finally:
            with self._lock:
                one.users -= 1
                one.used = time.monotonic()
                last = one.left and not one.users
            if last:
                one.trivet.close()
            self._close_idle()

    def _acquired(self, tenant: str) -> _OpenTenant:
        found = self._acquired_if_open(tenant)
        if found is None:
            with self._lock:
                turn = self._opening_locks.setdefault(tenant, threading.Lock())
            with turn:  # a slow open delays only callers of that tenant
                found = self._acquired_if_open(tenant) or self._open_tenant(tenant)
        return found

    def _acquired_if_open(self, tenant: str) -> _OpenTenant | None:
        """Find and mark under one lock, or another thread could close it in between."""
        with self._lock:
            found = self._tenants.get(tenant)
            if found is not None:
                found.users += 1
            return found

    def _open_tenant(self, tenant: str) -> _OpenTenant:
        engine = open_engine(self._settings_for(tenant), self._shared_for(tenant))
        opened = _OpenTenant(Trivet.of(engine), time.monotonic(), users=1)
        with self._lock:
            self._tenants[tenant] = opened
        return opened

    def _shared_for(self, tenant: str) -> Shared:
        home = self._homes.of(tenant) if self._homes else None
        return self._shared if home is None else msgspec.structs.replace(self._shared, server=home)

    def _close_idle(self) -> None:
        with self._lock:
            unused = sorted(
                (one.used, name) for name, one in self._tenants.items() if not one.users
            )
            others = [(used, name) for used, name in unused if name != self._settings.tenant]
            limit, beyond = (
                time.monotonic() - TENANT_IDLE_SECONDS,
                len(self._tenants) - MAX_OPEN_TENANTS,
            )
            going = [
                name for place, (used, name) in enumerate(others) if used < limit or place < beyond
            ]
            closing = [self._tenants.pop(name) for name in going]
        for one in closing:
            one.trivet.close()
