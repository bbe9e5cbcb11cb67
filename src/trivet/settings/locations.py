"""Where stores, settings and caches are, and hints for a missing store."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from trivet.errors import StoreError

if TYPE_CHECKING:
    from trivet.settings.settings import Settings


class DatabaseKind(NamedTuple):
    """A kind of database server, recognized by its URL schemes."""

    name: str
    package: str  # the folder in trivet/store, and the extra that installs its dependencies
    schemes: tuple[str, ...]


DATABASES = (DatabaseKind("PostgreSQL", "postgres", ("postgresql://", "postgres://")),)
_SECRET = ("password", "sslpassword")
_HIDDEN = "***"
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # two letters at least: C:/ is a drive


def database_of(address: str) -> DatabaseKind | None:
    return next((kind for kind in DATABASES if address.startswith(kind.schemes)), None)


def is_server(address: str) -> bool:
    return address.lower().startswith(("http://", "https://"))


def is_file(address: str) -> bool:
    return not is_server(address) and database_of(address) is None


def is_unrecognized_address(address: str) -> bool:
    """Return whether it looks like an unknown URL: misspelled, or damaged by `Path`."""
    return bool(_ADDRESS.match(address)) and is_file(address)


def without_password(address: str) -> str:
    """Return the address as it may be displayed."""
    if database_of(address) is None:
        return address
    scheme, place, path, query, _ = urlsplit(address)
    user, at, hosts = place.rpartition("@")
    name, colon, _ = user.partition(":")
    given = [
        (key, _HIDDEN if key in _SECRET else value)
        for key, value in parse_qsl(query, keep_blank_values=True)
    ]
    shown = f"{name}{colon and f':{_HIDDEN}'}{at}{hosts}"
    return f"{scheme}://{shown}{path}{query and '?'}{urlencode(given, safe='/:,*')}"


def config_path(environment: Mapping[str, str] | None = None) -> Path:
    environment = os.environ if environment is None else environment
    if named := environment.get("TRIVET_CONFIG"):
        return Path(named).expanduser()
    base = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "trivet" / "trivet.toml"


def data_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder for the default store and other files of the user."""
    base = (os.environ if environment is None else environment).get(
        "XDG_DATA_HOME"
    ) or "~/.local/share"
    return Path(base).expanduser() / "trivet"


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder for files that can be rebuilt."""
    base = (os.environ if environment is None else environment).get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "trivet"


def default_store(environment: Mapping[str, str] | None = None) -> Path:
    return data_folder(environment) / "memory.db"


# The start of a SQLite file, and the position of its application id.
_SQLITE = b"SQLite format 3\0"
_OWNER = slice(68, 72)
# "TRVT" marks a Trivet store, so that Trivet never writes into another program's database.
APPLICATION_ID = 0x54525654
# Bounds the search for a similar name; a folder of stores holds fewer files.
MAX_FILES_SCANNED = 500


def check_exists(settings: Settings) -> None:
    """Raise StoreError for a missing file, so a mistyped path does not create a store."""
    if missing := missing_store_message(settings):
        raise StoreError(missing)


def missing_store_message(settings: Settings) -> str | None:
    """Return an error message if the store's file is missing, otherwise None.

    The default store and a tenant's file may be missing: the first process and the server create
    them.
    """
    path = Path(settings.path).expanduser()
    if (
        not is_file(settings.path)
        or path.exists()
        or path == default_store()
        or settings.tenant != "default"
    ):
        return None
    nearest = closest_store(path)
    meant = f" The nearest store is {nearest}." if nearest else ""
    return f"There is no store at {path}.{meant} Storing a first memory creates one."


def closest_store(path: Path) -> Path | None:
    """Return the store with the most similar path, in the same folder or the default one."""
    known = {
        str(file): file for file in [*_stores_in(path.parent), default_store()] if is_store(file)
    }
    found = difflib.get_close_matches(str(path), known, n=1, cutoff=0)
    return known[found[0]] if found else None


def is_store(file: Path) -> bool:
    """Return whether the file is a Trivet store, by its first bytes."""
    try:
        with file.open("rb") as opened:
            head = opened.read(_OWNER.stop)
    except OSError:  # missing or unreadable, so not what the caller meant
        return False
    return head.startswith(_SQLITE) and head[_OWNER] == APPLICATION_ID.to_bytes(4, "big")


def _stores_in(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (file for file in islice(folder.iterdir(), MAX_FILES_SCANNED) if file.is_file())
