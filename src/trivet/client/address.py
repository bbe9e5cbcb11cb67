"""The address of a server and the key to it, checked before anything is sent."""

from __future__ import annotations

from urllib.parse import urlsplit

from trivet.errors import InvalidInput
from trivet.settings.address import is_server


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
