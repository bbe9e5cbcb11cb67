"""Signing in to the page by a one-time link: whoever made the link on this machine is the owner of the store.

A link lives in this process alone, for five minutes, and is good once. The page exchanges it for a key like any other,
which it sends in a header: a cookie would be sent to whatever listens on another port of the same machine.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet.clock import moment, now
from trivet.contract import Parameters, check
from trivet.errors import Unauthorised
from trivet.memory.accounts import RIGHTS
from trivet.serve.http.endpoint import JSON, Handler, ServerContext
from trivet.serve.http.errors import Limited
from trivet.serve.http.parse_request import from_body
from trivet.serve.http.rate import Rate
from trivet.types import LOCAL

LINK_SECONDS = 300.0
# Beyond, the oldest is void: nobody opens so many pages within five minutes.
MOST_LINKS = 16
KEY_HOURS = 12
LABEL = "page"
# A person pastes a wrong link a few times; a program that guesses 256 bits is only kept from making work.
WRONG_A_MINUTE = 10
WRONG_AT_ONCE = 10
LARGEST_BODY = 4096
USED = "This link is not known, was used already or is older than five minutes. Make a new one with `trivet open`."


class SignInRequest(Parameters, frozen=True, kw_only=True):
    token: str


class Links:
    """The links that are good now. They are kept as hashes; to find one takes as long whether it is there or not."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def make(self) -> str:
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_old()
            while len(self._ends) >= MOST_LINKS:
                self._ends.pop(next(iter(self._ends)))
            self._ends[_hash(token)] = self._clock() + LINK_SECONDS
        return token

    def take(self, token: str) -> bool:
        """Whether it is good, which it is never again."""
        given = _hash(token)
        with self._lock:
            self._drop_old()
            found = [known for known in self._ends if hmac.compare_digest(known, given)]
            for known in found:
                del self._ends[known]
        return bool(found)

    def _drop_old(self) -> None:
        for known in [known for known, end in self._ends.items() if end <= self._clock()]:
            del self._ends[known]


def link_to(address: str, links: Links) -> str:
    """The address that opens the page signed in. The fragment is never sent to a server, so no log has it."""
    return f"{address}/#/sign-in/{links.make()}"


def sign_in_handler(context: ServerContext, links: Links) -> Handler:
    wrong = Rate(WRONG_A_MINUTE, WRONG_AT_ONCE)

    async def handle(request: Request) -> Response:
        address = request.client.host if request.client else ""
        if wait := wrong.wait(address):
            raise Limited(f"Too many wrong links came from this address. Wait {wait} s.", wait)
        settings = context.settings
        given = check(SignInRequest, await from_body(request, LARGEST_BODY, settings.server_request_seconds))
        if not links.take(given.token):
            wrong.take(address)
            raise Unauthorised(USED)
        key = await context.pool.run(lambda: _owners_key(context), "write")
        return Response(msgspec.json.encode({"key": key}), media_type=JSON)

    return handle


def _owners_key(context: ServerContext) -> str:
    ends = moment(now()) + timedelta(hours=KEY_HOURS)
    return context.tenants.make_key(LOCAL, "admin", RIGHTS["admin"], LABEL, ends.isoformat())


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
