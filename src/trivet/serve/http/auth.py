"""Which hosts the server answers for, and which pages may ask: a site that points its own name at this machine
(DNS rebinding), or a page that posts across sites, is turned away.

Lets a request in: within the limit of requests at once, with a known key, and within that key's rate.

Every address needs a key but those named here, so a route that is added later is closed until it is named.
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
    """`names` empty: any host is answered, which a server behind a proxy that checks it may want."""

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
                "The body has two lengths. Send Content-Length or Transfer-Encoding, not both."
            )
        if self._names and _name(host) not in self._names:
            raise Misdirected(
                f"This server answers for {', '.join(sorted(self._names))} alone. "
                "Another name goes into the setting server_hosts."
            )
        if any(origin.partition("://")[2] != host for origin in headers.getlist("origin")):
            raise CrossSiteRequest("A page of another site may not use this server.")


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]*))(?::\d*)?", re.IGNORECASE)


def _name(host: str) -> str:
    """Without the port, and without the brackets of an IPv6 address; empty where it is no name at all."""
    match = _HOST.fullmatch(host)
    return (match[1] or match[2] or "").lower() if match else ""


HEALTH = frozenset(("/healthz", "/readyz"))
PUBLIC_PATHS = HEALTH | {"/", "/docs", "/openapi.json"}
MAX_KEY_CHARACTERS = 1000
# Each is a socket and a coroutine.
MAX_WAITING = 2_000
READ_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
# So many keys must come together to fill the server.
MIN_KEYS_TO_FILL = 4
NO_KEY = "This needs a key: send the header Authorization: Bearer KEY. `trivet key add` makes one."


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
                f"{self._max_running} requests are being worked on, and no more at once. Try again in a moment."
            )
        self._running += 1
        try:
            if not self._is_open(scope):
                key = _key(Headers(scope=scope))
                caller = scope["state"]["caller"] = await self._authenticate(key)
                scope["state"]["known_at"] = time.monotonic()
                scope["state"]["secret"] = hashlib.sha256(
                    key.encode()
                ).digest()  # see idempotency.py
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
        """A laptop that waits for news takes no room from those who work; there is room for many of them."""
        if self._waiting >= MAX_WAITING:
            raise Busy(
                f"{MAX_WAITING} laptops wait for news, and no more at once. Ask again later."
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
        """One key cannot take the room of all, with requests that it sends by halves, say."""
        if self._by_key[key] >= self._max_running_per_key:
            self._metrics.limited.inc()
            raise Limited(
                f"This key has {self._max_running_per_key} requests under way, and no more at once.",
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
            forwarded = (
                "x-forwarded-for" in headers or "forwarded" in headers
            )  # by a proxy on this machine
            return not forwarded and is_loopback((scope.get("client") or ("", 0))[0])
        return scope["path"] in PUBLIC_PATHS or scope["path"].startswith(PAGE)

    async def _authenticate(self, key: str) -> Caller:
        caller = await self._pool.run(lambda: self._tenants.caller(key), "door")
        wait = self._rate.take(f"{caller.tenant}.{caller.key}")
        if wait:
            self._metrics.limited.inc()
            raise Limited(f"This key asks too often. Nothing was done; wait {wait} s.", wait)
        return caller


def _key(headers: Headers) -> str:
    given = headers.getlist("authorization")
    scheme, _, key = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != AUTH_SCHEME.lower() or not 0 < len(key.strip()) <= MAX_KEY_CHARACTERS:
        raise Unauthorised(NO_KEY)
    return key.strip()
