"""A connection to a server for threads, and the options it shares with the asynchronous one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import httpx2
from msgspec import UNSET

from trivet.client import call
from trivet.client.call import Call, LineReader, encode_chunks, result_of
from trivet.client.responses import (
    Attempts,
    check_export_response,
    checked_body,
    export_interrupted,
    import_interrupted,
)
from trivet.contract import Remember, Request
from trivet.errors import InvalidInput, StoreError
from trivet.settings import Settings
from trivet.settings.locations import is_server
from trivet.types import Imported, Progress, Remembered

if TYPE_CHECKING:
    import ssl


CONNECT_SECONDS = 10.0
# Shorter than the server's 30, so that the client closes first.
KEEPALIVE_SECONDS = 25.0


def client_options(settings: Settings) -> dict[str, Any]:
    """Return options for httpx2.

    Redirects and the environment's proxies are ignored, so that the key goes only where the
    settings say.
    """
    address, key = checked_address(settings.path), checked_key(settings.key)
    seconds = settings.answer_time_limit_ms / 1000
    return {
        "base_url": address,
        "headers": _headers(key),
        "timeout": httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        "limits": httpx2.Limits(
            max_connections=100, max_keepalive_connections=20, keepalive_expiry=KEEPALIVE_SECONDS
        ),
        "follow_redirects": False,
        "trust_env": False,
        "proxy": checked_proxy(settings.proxy),
        "verify": _certificates(address, settings.proxy),
    }


def configured_scope(settings: Settings) -> str | None:
    """Return the user's scope, or None for the server's."""
    return None if settings.scope == Settings().scope else settings.scope


def closed(address: str) -> StoreError:
    return StoreError(f"The connection to {address} is closed. Open it again.")


def _headers(key: str) -> dict[str, str]:
    headers = {"Accept": "application/json, application/problem+json", "User-Agent": "trivet"}
    return headers | ({"Authorization": f"Bearer {key}"} if key else {})


def _certificates(address: str, proxy: str) -> ssl.SSLContext | bool:
    """Load certificates only for TLS: it takes longer than a recall."""
    encrypted = any(one.lower().startswith("https://") for one in (address, proxy))
    return httpx2.create_ssl_context() if encrypted else False


def checked_address(text: str) -> str:
    """Return the address without a final slash; it may have a path."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port  # reading `port` raises if it is invalid
    except ValueError:
        host = None
    if not host or not is_server(text) or not text.isprintable() or " " in text:
        raise InvalidInput(
            "Give a server's address as https://memory.example.org or http://127.0.0.1:7373."
        )
    if "@" in parts.netloc:
        raise InvalidInput(
            f"The address of {host} contains a user or a password, which would appear in "
            "logs. Remove them and "
            "give the key as key=..., as TRIVET_KEY, or as the setting key."
        )
    if parts.query or parts.fragment:
        raise InvalidInput(
            f"The address of {host} contains a query or fragment (? or #). Give only the "
            "server's address."
        )
    return text.rstrip("/")


def checked_proxy(text: str) -> str | None:
    """Return the proxy or None; errors hide it, as it may hold a password."""
    try:
        host = urlsplit(text).hostname if is_server(text) and text.isprintable() else None
    except ValueError:
        host = None
    if text and not host:
        raise InvalidInput(
            "proxy: give an address such as http://proxy.example.org:3128, or nothing to use "
            "no proxy."
        )
    return text or None


def checked_key(key: str) -> str:
    """Return the key if a header can carry it; errors do not show it."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise InvalidInput(
            "The key contains invalid characters. Copy it again, without spaces or line breaks."
        )
    return key


T = TypeVar("T")


class Connection:
    """A connection to a server that threads can share."""

    def __init__(self, settings: Settings, wait: Callable[[float], object] = time.sleep) -> None:
        self.settings = settings
        self._http = httpx2.Client(**client_options(settings))
        self._wait = wait

    @property
    def address(self) -> str:
        return self.settings.path

    def perform(self, request: Request[T]) -> T:
        answer: T = self._ask(call.call_of(request, configured_scope(self.settings)))
        return answer

    def remember_many(self, memories: Iterable[Mapping[str, Any] | Remember]) -> list[Remembered]:
        stored: list[Remembered] = self._ask(
            call.remember_many(memories, configured_scope(self.settings))
        )
        return stored

    def diff(self, id: str, older: int, newer: int, reveal: bool) -> str:
        return str(self._ask(call.diff(id, older, newer, reveal)))

    def export(self, include_sensitive: bool) -> Iterator[str]:
        self._check_open()
        return self._receive(call.export(include_sensitive))

    def import_(self, lines: Iterable[str], progress: Progress | None) -> Imported:
        self._check_open()
        imported: Imported = self._carry(call.import_(), lines, progress)
        return imported

    def engine(self) -> NoReturn:
        raise call.unsupported_over_http("engine")

    def close(self) -> None:
        self._http.close()

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise closed(self.settings.path)

    def _ask(self, call: Call) -> Any:
        self._check_open()
        if call.known is not UNSET:
            return call.known
        attempts = Attempts(call, self.settings.path)
        while True:
            try:
                response = self._http.request(
                    call.method, call.path, content=call.body, headers=call.headers
                )
            except httpx2.RequestError as error:
                self._wait(attempts.after_connection_error(error))
                continue
            pause = attempts.after_response(response.status_code, response.headers)
            if pause is None:
                return result_of(call, attempts.checked_body(response, self.settings))
            self._wait(pause)

    def _carry(self, call: Call, lines: Iterable[str], progress: Progress | None) -> Any:
        """Send lines once: they cannot be read again for a retry."""
        body = encode_chunks(lines, progress)
        try:
            response = self._http.request(
                call.method, call.path, content=body, headers=call.headers
            )
        except httpx2.RequestError as error:
            raise import_interrupted(error, self.settings.path) from None
        return result_of(call, checked_body(response, self.settings))

    def _receive(self, call: Call) -> Iterator[str]:
        lines = LineReader()
        try:
            with self._http.stream(call.method, call.path, headers=call.headers) as response:
                if not response.is_success:
                    response.read()
                check_export_response(response, self.settings)
                for piece in response.iter_bytes():
                    yield from lines.of(piece)
        except httpx2.RequestError as error:
            raise export_interrupted(error, self.settings.path) from None
        yield from lines.last()
