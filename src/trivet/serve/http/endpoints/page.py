"""The browser page: static files from the package, and sign-in by one-time links.

The page exchanges a link for an API key and sends that in a header: a cookie would also go to other
ports of the machine.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet.common.clock import moment, now
from trivet.contract import Parameters, check
from trivet.errors import Unauthorised
from trivet.memory.admin.accounts import RIGHTS
from trivet.serve.http.endpoints.endpoint import (
    JSON,
    EndpointRoute,
    Handler,
    ServerContext,
    from_body,
)
from trivet.serve.http.errors import Limited
from trivet.serve.http.limits import RateLimiter
from trivet.types import LOCAL

# Only own scripts and styles, none inline; strings cannot become markup.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
SIGN_IN = "/page/sign-in"
PAGE_PREFIX = "/page/"


class PageFile(msgspec.Struct, frozen=True):
    body: bytes
    kind: str
    etag: str


def page_files() -> dict[str, PageFile]:
    root = files("trivet") / "page"
    found = {
        PAGE_PREFIX + name: _read(file)
        for name, file in _files(root, "")
        if name.rpartition(".")[2] in TYPES
    }
    found["/"] = found.pop(PAGE_PREFIX + "index.html")
    return found


def page_routes(context: ServerContext, links: SignInLinks) -> list[EndpointRoute]:
    served = [_address(path, file) for path, file in page_files().items()]
    return [EndpointRoute(SIGN_IN, {"POST": sign_in_handler(context, links)}), *served]


def _files(folder: Traversable, above: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for one in folder.iterdir():
        found += _files(one, f"{above}{one.name}/") if one.is_dir() else [(above + one.name, one)]
    return found


def _read(file: Traversable) -> PageFile:
    body = file.read_bytes()
    return PageFile(
        body, TYPES[file.name.rpartition(".")[2]], f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    )


def _address(path: str, file: PageFile) -> EndpointRoute:
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache", "ETag": file.etag}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, headers={**headers, "Content-Type": file.kind})

    return EndpointRoute(path, {"GET": answer})


LINK_SECONDS = 300.0
# Beyond this, the oldest link expires.
MAX_LINKS = 16
KEY_HOURS = 12
LABEL = "page"
# Enough for pasting a wrong link; tokens of 256 bits cannot be guessed anyway.
MAX_WRONG_PER_MINUTE = 10
MAX_WRONG_BURST = 10
MAX_BODY_BYTES = 4096
LINK_INVALID = (
    "This link is unknown, already used or older than five minutes. "
    "Make a new one with `trivet open`."
)


class SignInRequest(Parameters, frozen=True, kw_only=True):
    token: str


class SignInLinks:
    """Valid sign-in tokens, stored as hashes and compared in constant time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def make(self) -> str:
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_old()
            while len(self._ends) >= MAX_LINKS:
                self._ends.pop(next(iter(self._ends)))
            self._ends[_hash(token)] = self._clock() + LINK_SECONDS
        return token

    def take(self, token: str) -> bool:
        """Invalidate the token and return whether it was valid."""
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


def link_to(address: str, links: SignInLinks) -> str:
    """Return a sign-in URL with the token in its fragment, which reaches no server log."""
    return f"{address}/#/sign-in/{links.make()}"


def sign_in_handler(context: ServerContext, links: SignInLinks) -> Handler:
    wrong = RateLimiter(MAX_WRONG_PER_MINUTE, MAX_WRONG_BURST)

    async def handle(request: Request) -> Response:
        address = request.client.host if request.client else ""
        if wait := wrong.wait(address):
            raise Limited(f"Too many invalid links from this address. Wait {wait} s.", wait)
        settings = context.settings
        given = check(
            SignInRequest, await from_body(request, MAX_BODY_BYTES, settings.server_request_seconds)
        )
        if not links.take(given.token):
            wrong.take(address)
            raise Unauthorised(LINK_INVALID)
        key = await context.pool.run(lambda: _make_owner_key(context), "write")
        return Response(msgspec.json.encode({"key": key}), media_type=JSON)

    return handle


def _make_owner_key(context: ServerContext) -> str:
    ends = moment(now()) + timedelta(hours=KEY_HOURS)
    return context.tenants.make_key(LOCAL, "admin", RIGHTS["admin"], LABEL, ends.isoformat())


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
