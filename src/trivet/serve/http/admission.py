"""Who comes in: at most so many at once, with a key that is known, and no key too often.

Everything needs a key but what is named here, so that a route added later is closed until somebody opens it.
"""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from trivet.errors import Unauthorised
from trivet.house import House
from trivet.serve.http.calls import Calls
from trivet.serve.http.hosts import is_loopback
from trivet.serve.http.metrics import Metrics
from trivet.serve.http.rate import Rate
from trivet.serve.http.refusals import WHO, Busy, Limited
from trivet.settings import Settings
from trivet.types import Caller

HEALTH = frozenset(("/healthz", "/readyz"))
OPEN = HEALTH | {"/", "/docs", "/openapi.json"}
METRICS = "/metrics"
LONGEST_KEY = 1000
NO_KEY = "This needs a key: send the header Authorization: Bearer KEY. `trivet key add` makes one."


class Admission:
    def __init__(self, app: ASGIApp, house: House, calls: Calls, metrics: Metrics, settings: Settings) -> None:
        self._app = app
        self._house = house
        self._calls = calls
        self._metrics = metrics
        self._rate = Rate(settings.server_requests_a_minute, settings.server_burst)
        self._most = settings.server_requests_at_once
        self._metrics_on_loopback = settings.server_metrics == "loopback"
        self._running = 0

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
                scope["state"]["caller"] = await self._known(key)
                scope["state"]["secret"] = hashlib.sha256(key.encode()).digest()  # see once.py
            await self._app(scope, receive, send)
        finally:
            self._running -= 1

    def _is_open(self, scope: Scope) -> bool:
        if scope["path"] == METRICS and self._metrics_on_loopback:
            return is_loopback((scope.get("client") or ("", 0))[0])
        return scope["path"] in OPEN

    async def _known(self, key: str) -> Caller:
        caller = await self._calls.run(lambda: self._house.caller(key))
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
