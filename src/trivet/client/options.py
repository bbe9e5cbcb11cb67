"""How both connections are set up, the waiting one and the asynchronous one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from trivet.errors import InvalidInput, StoreError
from trivet.settings import Settings
from trivet.settings.address import is_server

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 10.0
# Shorter than the server's own thirty, so that we let go of a silent connection first.
KEPT_SECONDS = 25.0


def options(settings: Settings) -> dict[str, Any]:
    """No proxy, password file or redirect of the environment's is used: the key goes where the settings say."""
    address, key = checked_address(settings.path), checked_key(settings.key)
    seconds = settings.answer_time_limit_ms / 1000
    return {
        "base_url": address,
        "headers": _headers(key),
        "timeout": httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        "limits": httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=KEPT_SECONDS),
        "follow_redirects": False,
        "trust_env": False,
        "proxy": checked_proxy(settings.proxy),
        "verify": _certificates(address, settings.proxy),
    }


def own_scope(settings: Settings) -> str | None:
    """The scope that this user has configured, if any; else the server's own applies."""
    return None if settings.scope == Settings().scope else settings.scope


def closed(address: str) -> StoreError:
    return StoreError(f"The connection to {address} is closed. Open it again.")


def _headers(key: str) -> dict[str, str]:
    headers = {"Accept": "application/json, application/problem+json", "User-Agent": "trivet"}
    return headers | ({"Authorization": f"Bearer {key}"} if key else {})


def _certificates(address: str, proxy: str) -> ssl.SSLContext | bool:
    """The system's certificates; reading them takes longer than a recall, and without TLS no server shows one."""
    encrypted = any(one.lower().startswith("https://") for one in (address, proxy))
    return httpx2.create_ssl_context() if encrypted else False


def checked_address(text: str) -> str:
    """The address without a final slash; it may have a path, for a server behind a proxy."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port  # a bad port is found when it is asked for
    except ValueError:
        host = None
    if not host or not is_server(text) or not text.isprintable() or " " in text:
        raise InvalidInput("The address of a server looks like https://memory.example.org or http://127.0.0.1:7373.")
    if "@" in parts.netloc:
        raise InvalidInput(
            f"The address of {host} holds a user or a password, which end up in logs. Leave them out; "
            "give the key as key=..., as TRIVET_KEY, or as the setting key."
        )
    if parts.query or parts.fragment:
        raise InvalidInput(f"The address of {host} ends with a query (? or #). Give the address of the server alone.")
    return text.rstrip("/")


def checked_proxy(text: str) -> str | None:
    """The address of a proxy, which may hold a password; the error does not show it."""
    try:
        host = urlsplit(text).hostname if is_server(text) and text.isprintable() else None
    except ValueError:
        host = None
    if text and not host:
        raise InvalidInput("proxy: an address such as http://proxy.example.org:3128 is expected, or nothing for none.")
    return text or None


def checked_key(key: str) -> str:
    """The key as a header can carry it. The error does not show it."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise InvalidInput("The key holds characters that no key has. Copy it again, without spaces or line ends.")
    return key
