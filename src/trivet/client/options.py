"""How both connections are set up, the waiting one and the asynchronous one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from trivet.client.address import checked_address, checked_key, checked_proxy
from trivet.errors import StoreError
from trivet.settings import Settings

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
    """The system's certificates; reading them takes longer than a recall, and without TLS nobody shows one."""
    encrypted = any(one.lower().startswith("https://") for one in (address, proxy))
    return httpx2.create_ssl_context() if encrypted else False
