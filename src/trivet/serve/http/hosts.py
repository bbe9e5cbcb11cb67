"""Which hosts the server answers for, and which pages may ask: a site that points its own name at this machine
(DNS rebinding), or a page that posts across sites, is turned away."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from trivet.serve.http.errors import Foreign, Malformed, Misdirected

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Hosts:
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
            raise Malformed("The body has two lengths. Send Content-Length or Transfer-Encoding, not both.")
        if self._names and _name(host) not in self._names:
            raise Misdirected(
                f"This server answers for {', '.join(sorted(self._names))} alone. "
                "Another name goes into the setting server_hosts."
            )
        if any(origin.partition("://")[2] != host for origin in headers.getlist("origin")):
            raise Foreign("A page of another site may not use this server.")


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]*))(?::\d*)?", re.IGNORECASE)


def _name(host: str) -> str:
    """Without the port, and without the brackets of an IPv6 address; empty where it is no name at all."""
    match = _HOST.fullmatch(host)
    return (match[1] or match[2] or "").lower() if match else ""
