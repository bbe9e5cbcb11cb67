"""Lets a request in: within the limit of requests at once, with a known key, and within that key's rate.

Every address needs a key but those named here, so a route that is added later is closed until it is named.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from trivet.errors import Unauthorised
from trivet.serve.http.errors import WHO, Busy, Limited
from trivet.serve.http.hosts import is_loopback
from trivet.serve.http.metrics import Metrics
from trivet.serve.http.news import News
from trivet.serve.http.page import PREFIX as PAGE
from trivet.serve.http.rate import Rate
from trivet.serve.http.sync import WAIT
from trivet.serve.http.tenants import Tenants
from trivet.serve.http.thread_pool import ThreadPool
from trivet.settings import Settings
from trivet.types import Caller

HEALTH = frozenset(("/healthz", "/readyz"))
OPEN = HEALTH | {"/", "/docs", "/openapi.json"}
METRICS = "/metrics"
LONGEST_KEY = 1000
# Each is a socket and a coroutine.
MOST_WAITING = 2_000
READING = frozenset(("GET", "HEAD", "OPTIONS"))
# So many keys must come together to fill the server.
KEYS_AT_LEAST = 4
NO_KEY = "This needs a key: send the header Authorization: Bearer KEY. `trivet key add` makes one."


class Authentication:
    def __init__(
        self,
        app: ASGIApp,
        tenants: Tenants,
        pool: ThreadPool,
        metrics: Metrics,
        settings: Settings,
        news: News | None = None,
    ) -> None:
        self._app = app
        self._news = news
        self._tenants = tenants
        self._pool = pool
        self._metrics = metrics
        self._rate = Rate(settings.server_requests_a_minute, settings.server_burst)
        self._most = settings.server_requests_at_once
        self._metrics_on_loopback = settings.server_metrics == "loopback"
        self._running = 0
        self._laptops = 0
        self._most_of_a_key = max(1, settings.server_requests_at_once // KEYS_AT_LEAST)
        self._by_key: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in HEALTH:
            await self._app(scope, receive, send)
            return
        if self._running >= self._most:
            raise Busy(f"{self._most} requests are being worked on, and no more at once. Try again in a moment.")
        self._running += 1
        try:
            if not self._is_open(scope):
                key = _key(Headers(scope=scope))
                caller = scope["state"]["caller"] = await self._known(key)
                scope["state"]["known_at"] = time.monotonic()
                scope["state"]["secret"] = hashlib.sha256(key.encode()).digest()  # see idempotency.py
                if scope["path"] == WAIT:
                    await self._wait(scope, receive, send)
                else:
                    with self._share_of(f"{caller.tenant}.{caller.key}"):
                        await self._app(scope, receive, send)
                    self._told(scope, caller)
            else:
                await self._app(scope, receive, send)
        finally:
            self._running -= 1

    async def _wait(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A laptop that waits for news takes no room from those who work; there is room for many of them."""
        if self._laptops >= MOST_WAITING:
            raise Busy(f"{MOST_WAITING} laptops wait for news, and no more at once. Ask again later.")
        self._laptops += 1
        self._running -= 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running += 1
            self._laptops -= 1

    def _told(self, scope: Scope, caller: Caller) -> None:
        only_read = scope["method"] in READING or scope["state"].get("only_read")
        if self._news is not None and not only_read:
            self._news.written(caller)

    @contextmanager
    def _share_of(self, key: str) -> Iterator[None]:
        """One key cannot take the room of all, with requests that it sends by halves, say."""
        if self._by_key[key] >= self._most_of_a_key:
            self._metrics.limited.inc()
            raise Limited(f"This key has {self._most_of_a_key} requests under way, and no more at once.", 1)
        self._by_key[key] += 1
        try:
            yield
        finally:
            self._by_key[key] -= 1
            if not self._by_key[key]:
                del self._by_key[key]

    def _is_open(self, scope: Scope) -> bool:
        if scope["path"] == METRICS and self._metrics_on_loopback:
            headers = Headers(scope=scope)
            forwarded = "x-forwarded-for" in headers or "forwarded" in headers  # by a proxy on this machine
            return not forwarded and is_loopback((scope.get("client") or ("", 0))[0])
        return scope["path"] in OPEN or scope["path"].startswith(PAGE)

    async def _known(self, key: str) -> Caller:
        caller = await self._pool.run(lambda: self._tenants.caller(key), "door")
        wait = self._rate.take(f"{caller.tenant}.{caller.key}")
        if wait:
            self._metrics.limited.inc()
            raise Limited(f"This key asks too often. Nothing was done; wait {wait} s.", wait)
        return caller


def _key(headers: Headers) -> str:
    given = headers.getlist("authorization")
    scheme, _, key = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != WHO.lower() or not 0 < len(key.strip()) <= LONGEST_KEY:
        raise Unauthorised(NO_KEY)
    return key.strip()
