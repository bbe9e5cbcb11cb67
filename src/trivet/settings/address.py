"""Where a store is: a file, a database on a server, whose address may hold a password, or a server of ours."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit


class DatabaseKind(NamedTuple):
    """A kind of database server that keeps stores, known by how an address begins."""

    name: str
    package: str  # the folder of trivet/store that opens it, and the extra that installs what it needs
    schemes: tuple[str, ...]


# Beside them there is the file, which is every other address.
DATABASES = (DatabaseKind("PostgreSQL", "postgres", ("postgresql://", "postgres://")),)
_SECRET = ("password", "sslpassword")
_HIDDEN = "***"
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # two letters at least: C:/ is a drive


def database_of(address: str) -> DatabaseKind | None:
    """The kind of database server that keeps the store, if it is one."""
    return next((kind for kind in DATABASES if address.startswith(kind.schemes)), None)


def is_server(address: str) -> bool:
    """Whether a server of ours keeps the store, and is spoken to over HTTP."""
    return address.lower().startswith(("http://", "https://"))


def is_file(address: str) -> bool:
    """Whether the store is a file of this machine."""
    return not is_server(address) and database_of(address) is None


def is_unknown(address: str) -> bool:
    """Whether it looks like an address and is none we know: misspelt, or made a `Path`, which drops a slash."""
    return bool(_ADDRESS.match(address)) and is_file(address)


def without_password(address: str) -> str:
    """As it may be shown. What is no server's address has none."""
    if database_of(address) is None:
        return address
    scheme, place, path, query, _ = urlsplit(address)
    user, at, hosts = place.rpartition("@")
    name, colon, _ = user.partition(":")
    given = [(key, _HIDDEN if key in _SECRET else value) for key, value in parse_qsl(query, keep_blank_values=True)]
    shown = f"{name}{colon and f':{_HIDDEN}'}{at}{hosts}"
    return f"{scheme}://{shown}{path}{query and '?'}{urlencode(given, safe='/:,*')}"
