"""Checks before a request reaches its endpoint: host, origin, API key and limits.

Host and origin checks stop DNS rebinding.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from trivet.errors import Unauthorised
from trivet.serve.http.endpoints.page import PAGE_PREFIX as PAGE
from trivet.serve.http.endpoints.sync import WAIT_PATH, ChangeNotifier
from trivet.serve.http.errors import (
    AUTH_SCHEME,
    Busy,
    CrossSiteRequest,
    Limited,
    Malformed,
    Misdirected,
)
from trivet.serve.http.limits import RateLimiter, ThreadPool
from trivet.serve.http.monitoring import METRICS_PATH, Metrics
from trivet.serve.http.tenants import Tenants
from trivet.settings import Settings
from trivet.types import Caller

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class HostCheck:
    """Middleware that checks Host and Origin; empty `names` accept any host."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._check(Headers(scope=scope))
        await self._app(scope, receive, send)

    def _check(self, headers: Headers) -> None:
        host = headers.get("host", "")
        if "transfer-encoding" in headers and "content-length" in headers:
            raise Malformed(
                "The request has both Content-Length and Transfer-Encoding. Send only one of them."
            )
        if self._names and _name(host) not in self._names:
            raise Misdirected(
                f"This server answers only for {', '.join(sorted(self._names))}. "
                "Add other names to the setting server_hosts."
            )
        if any(origin.partition("://")[2] != host for origin in headers.getlist("origin")):
            raise CrossSiteRequest("Pages of other sites may not use this server.")


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]*))(?::\d*)?", re.IGNORECASE)


def _name(host: str) -> str:
    match = _HOST.fullmatch(host)
    return (match[1] or match[2] or "").lower() if match else ""


HEALTH = frozenset(("/healthz", "/readyz"))
PUBLIC_PATHS = HEALTH | {"/", "/docs", "/openapi.json"}
MAX_KEY_CHARACTERS = 1000
# Clients that may wait for changes. Each costs a socket and a coroutine.
MAX_WAITING = 2_000
READ_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
# At least this many keys share the concurrent requests.
MIN_KEYS_TO_FILL = 4
NO_KEY = (
    "This request needs a key: send the header Authorization: Bearer KEY. "
    "`trivet key add` makes one."
)


class Authentication:
    def __init__(
        self,
        app: ASGIApp,
        tenants: Tenants,
        pool: ThreadPool,
        metrics: Metrics,
        settings: Settings,
        news: ChangeNotifier | None = None,
    ) -> None:
        self._app = app
        self._news = news
        self._tenants = tenants
        self._pool = pool
        self._metrics = metrics
        self._rate = RateLimiter(settings.server_requests_a_minute, settings.server_burst)
        self._max_running = settings.server_requests_at_once
        self._metrics_on_loopback = settings.server_metrics == "loopback"
        self._running = 0
        self._waiting = 0
        self._max_running_per_key = max(1, settings.server_requests_at_once // MIN_KEYS_TO_FILL)
        self._by_key: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in HEALTH:
            await self._app(scope, receive, send)
            return
        if self._running >= self._max_running:
            raise Busy(
                f"The server is at its limit of {self._max_running} concurrent requests. "
                "Nothing was done; try again in a moment."
            )
        self._running += 1
        try:
            if not self._is_open(scope):
                key = _key(Headers(scope=scope))
                caller = scope["state"]["caller"] = await self._authenticate(key)
                scope["state"]["known_at"] = time.monotonic()
                # Seals the kept answers of idempotent requests.
                scope["state"]["secret"] = hashlib.sha256(key.encode()).digest()
                if scope["path"] == WAIT_PATH:
                    await self._wait(scope, receive, send)
                else:
                    with self._slot_of(f"{caller.tenant}.{caller.key}"):
                        await self._app(scope, receive, send)
                    self._notify_change(scope, caller)
            else:
                await self._app(scope, receive, send)
        finally:
            self._running -= 1

    async def _wait(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._waiting >= MAX_WAITING:
            raise Busy(
                f"The server is at its limit of {MAX_WAITING} clients that wait for changes. "
                "Try again later."
            )
        self._waiting += 1
        self._running -= 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running += 1
            self._waiting -= 1

    def _notify_change(self, scope: Scope, caller: Caller) -> None:
        only_read = scope["method"] in READ_METHODS or scope["state"].get("only_read")
        if self._news is not None and not only_read:
            self._news.written(caller)

    @contextmanager
    def _slot_of(self, key: str) -> Iterator[None]:
        if self._by_key[key] >= self._max_running_per_key:
            self._metrics.limited.inc()
            raise Limited(
                f"This key is at its limit of {self._max_running_per_key} concurrent requests. "
                "Nothing was done; try again in a moment.",
                1,
            )
        self._by_key[key] += 1
        try:
            yield
        finally:
            self._by_key[key] -= 1
            if not self._by_key[key]:
                del self._by_key[key]

    def _is_open(self, scope: Scope) -> bool:
        if scope["path"] == METRICS_PATH and self._metrics_on_loopback:
            headers = Headers(scope=scope)
            # Behind a local proxy, every client looks like loopback.
            forwarded = "x-forwarded-for" in headers or "forwarded" in headers
            return not forwarded and is_loopback((scope.get("client") or ("", 0))[0])
        return scope["path"] in PUBLIC_PATHS or scope["path"].startswith(PAGE)

    async def _authenticate(self, key: str) -> Caller:
        caller = await self._pool.run(lambda: self._tenants.caller(key), "door")
        wait = self._rate.take(f"{caller.tenant}.{caller.key}")
        if wait:
            self._metrics.limited.inc()
            raise Limited(
                f"This key sends too many requests. Nothing was done; wait {wait} s.", wait
            )
        return caller


def _key(headers: Headers) -> str:
    given = headers.getlist("authorization")
    scheme, _, key = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != AUTH_SCHEME.lower() or not 0 < len(key.strip()) <= MAX_KEY_CHARACTERS:
        raise Unauthorised(NO_KEY)
    return key.strip()
