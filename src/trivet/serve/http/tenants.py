"""The open stores of a server: the first request with a key of a tenant opens it; an idle one, or one too many, closes.

On SQLite a tenant is a file of its own beside the first one's; on PostgreSQL it is a part of the same database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from trivet.errors import Moved, Moving, StoreError
from trivet.memory.accounts import caller_of, check_still, make_key, tenant_of
from trivet.memory.engine import Shared, open_engine
from trivet.memory.tenants import check_tenant, tenant_file
from trivet.search.load import Load
from trivet.serve.http.homes import Homes
from trivet.settings import Settings
from trivet.store.relational.viewer import MOVING_FOR_USERS
from trivet.trivet import Trivet
from trivet.types import Caller, Filter, Right, Role

IDLE_SECONDS = 900.0
# Each has threads, file descriptors, vectors and caches of its own. Beyond, those unused for longest are closed.
MOST_OPEN = 32


class _Open(msgspec.Struct):
    trivet: Trivet
    used: float
    users: int = 0  # those who work with it now; it is not closed before they are done
    left: bool = False  # the tenant lives elsewhere; nobody is given it any more


class Tenants:
    def __init__(self, settings: Settings, shared: Shared | None = None, processes: int = 1) -> None:
        """`shared` are models of a process that has them already, and closes them itself.

        `processes`: so many are one server, this one among them.
        """
        check_tenant(settings.tenant)
        self._settings = settings
        self._lent = shared is not None
        self._shared = shared or Shared.of(settings, processes)
        self._homes = Homes(settings, self._shared.server) if self._shared.server else None
        self._tenants: dict[str, _Open] = {}
        self._turns: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._first()  # a store that cannot be opened stops the server, not a request

    @property
    def load(self) -> Load:
        """How many recalls of all tenants are at work."""
        return self._shared.load

    def caller(self, key: str) -> Caller:
        """Who comes with this key. Of a tenant that is not here, as little is told as of a key that is not known."""
        tenant = tenant_of(key)
        with self._without_places():
            if tenant is None or not self._is_here(tenant):
                return caller_of(self._first().engine.store, self._settings.tenant, key, is_here=False)
            try:
                with self._held(tenant) as trivet:
                    return caller_of(trivet.engine.store, tenant, key)
            except Moved:  # to where it is followed now
                with self._held(tenant) as trivet:
                    return caller_of(trivet.engine.store, tenant, key)

    @contextmanager
    def using(self, caller: Caller) -> Iterator[Trivet]:
        """The caller's memory, which stays open as long as they work with it."""
        with self._without_places(), self._held(caller.tenant) as trivet:
            yield trivet.acting_as(caller)

    def trivet(self, caller: Caller) -> Trivet:
        """As `using`, for a moment: once many others are asked for, it may be closed."""
        with self.using(caller) as memory:
            return memory

    def check_still(self, caller: Caller) -> None:
        """Raises where the key that a request began with is no longer good for what it was."""
        with self._without_places(), self._held(caller.tenant) as trivet:
            check_still(trivet.engine.store, caller)

    def make_key(
        self,
        user: str,
        role: Role,
        rights: Sequence[Right] | None = None,
        label: str = "",
        expires_at: str | None = None,
    ) -> str:
        """A key of the first tenant, for a user who is added if need be."""
        store = self._first().engine.store
        if not store.accounts.has(user):
            store.accounts.add_user(user, role)
        return make_key(store, self._settings.tenant, user, rights, label, expires_at).text

    def has_users(self) -> bool:
        return bool(self._first().engine.store.accounts.users())

    def check(self) -> None:
        """Raises a StoreError when the store cannot be read."""
        with self._without_places():
            self._first().engine.store.memories.page(Filter(), "recency", 1, 0)

    def close(self) -> None:
        with self._lock:
            tenants, self._tenants = list(self._tenants.values()), {}
        for tenant in tenants:
            tenant.trivet.close()
        if self._homes:
            self._homes.close()
        if not self._lent:
            self._shared.close()

    @contextmanager
    def _without_places(self) -> Iterator[None]:
        """Where the stores are is not for callers to know."""
        try:
            yield
        except (Moved, Moving) as error:
            raise type(error)(MOVING_FOR_USERS) from error
        except StoreError as error:
            told = str(error)
            for place in self._homes.names() if self._homes else (str(one) for one in self._files()):
                told = told.replace(place, "the server's store")
            raise type(error)(told) from error

    def _files(self) -> list[Path]:
        return [tenant_file(self._of(tenant)) for tenant in {*self._tenants, self._settings.tenant}]

    def _first(self) -> Trivet:
        """It is never closed before the server ends."""
        with self._held(self._settings.tenant) as trivet:
            return trivet

    def _is_here(self, tenant: str) -> bool:
        if tenant in self._tenants:
            return True
        if self._homes:
            return self._homes.of(tenant) is not None
        return tenant_file(self._of(tenant)).exists()

    def _of(self, tenant: str) -> Settings:
        return msgspec.structs.replace(self._settings, tenant=tenant)

    @contextmanager
    def _held(self, tenant: str) -> Iterator[Trivet]:
        """Where the tenant turns out to have moved, this one is let go, and the next to come follow it."""
        one = self._taken(tenant)
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

    def _taken(self, tenant: str) -> _Open:
        found = self._marked(tenant)
        if found is None:
            with self._lock:
                turn = self._turns.setdefault(tenant, threading.Lock())
            with turn:  # one that opens slowly holds up its own users only
                found = self._marked(tenant) or self._take_in(tenant)
        return found

    def _marked(self, tenant: str) -> _Open | None:
        """Found and marked in one go, so that no other thread closes it in between."""
        with self._lock:
            found = self._tenants.get(tenant)
            if found is not None:
                found.users += 1
            return found

    def _take_in(self, tenant: str) -> _Open:
        engine = open_engine(self._of(tenant), self._shared_at_home(tenant))
        opened = _Open(Trivet.of(engine), time.monotonic(), users=1)
        with self._lock:
            self._tenants[tenant] = opened
        return opened

    def _shared_at_home(self, tenant: str) -> Shared:
        """With the database that the tenant lives in. The first tenant's may be new: it is made where the path says."""
        home = self._homes.of(tenant) if self._homes else None
        return self._shared if home is None else msgspec.structs.replace(self._shared, server=home)

    def _close_idle(self) -> None:
        with self._lock:
            unused = sorted((one.used, name) for name, one in self._tenants.items() if not one.users)
            others = [(used, name) for used, name in unused if name != self._settings.tenant]
            limit, beyond = time.monotonic() - IDLE_SECONDS, len(self._tenants) - MOST_OPEN
            going = [name for place, (used, name) in enumerate(others) if used < limit or place < beyond]
            closing = [self._tenants.pop(name) for name in going]
        for one in closing:
            one.trivet.close()
