"""Where a store is: a file, a server, or a PostgreSQL database, whose address may hold a password to be hidden."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

_SCHEMES = ("postgresql://", "postgres://")
_SECRET = ("password", "sslpassword")
_HIDDEN = "***"
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # two letters at least: C:/ is a drive


def is_postgres(address: str) -> bool:
    """Whether a PostgreSQL server keeps the store."""
    return address.startswith(_SCHEMES)


def is_server(address: str) -> bool:
    """Whether a server of ours keeps the store, and is spoken to over HTTP."""
    return address.lower().startswith(("http://", "https://"))


def is_unknown(address: str) -> bool:
    """Whether it looks like an address and is none we know: misspelt, or made a `Path`, which drops a slash."""
    return bool(_ADDRESS.match(address)) and not is_postgres(address) and not is_server(address)


def without_password(address: str) -> str:
    """As it may be shown. What is no server's address has none."""
    if not is_postgres(address):
        return address
    scheme, place, path, query, _ = urlsplit(address)
    user, at, hosts = place.rpartition("@")
    name, colon, _ = user.partition(":")
    given = [(key, _HIDDEN if key in _SECRET else value) for key, value in parse_qsl(query, keep_blank_values=True)]
    shown = f"{name}{colon and f':{_HIDDEN}'}{at}{hosts}"
    return f"{scheme}://{shown}{path}{query and '?'}{urlencode(given, safe='/:,*')}"
