"""Where a store is: a file, a database on a server, whose address may hold a password, or a server of ours.

Whether there is a store where the settings say; if not, the error names the one that was probably meant.
"""

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
    """A kind of database server that keeps stores, known by how an address begins."""

    name: str
    package: (
        str  # the folder of trivet/store that opens it, and the extra that installs what it needs
    )
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


def is_unrecognized_address(address: str) -> bool:
    """Whether it looks like an address and is none we know: misspelt, or made a `Path`, which drops a slash."""
    return bool(_ADDRESS.match(address)) and is_file(address)


def without_password(address: str) -> str:
    """As it may be shown. What is no server's address has none."""
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
    """Where the configuration file is, or would be."""
    return _config_file(os.environ if environment is None else environment)


def _config_file(environment: Mapping[str, str]) -> Path:
    if named := environment.get("TRIVET_CONFIG"):
        return Path(named).expanduser()
    base = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "trivet" / "trivet.toml"


def data_folder(environment: Mapping[str, str] | None = None) -> Path:
    """The user's folder for the default store and Trivet's other files."""
    base = (os.environ if environment is None else environment).get(
        "XDG_DATA_HOME"
    ) or "~/.local/share"
    return Path(base).expanduser() / "trivet"


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """The user's folder for what can be made again."""
    base = (os.environ if environment is None else environment).get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "trivet"


def default_store(environment: Mapping[str, str] | None = None) -> Path:
    return data_folder(environment) / "memory.db"


# How a SQLite file begins, and where it says whose it is.
_SQLITE = b"SQLite format 3\0"
_OWNER = slice(68, 72)
# "TRVT": tells a Trivet store from any other SQLite file, so that we never write into a stranger's database.
APPLICATION_ID = 0x54525654
# A folder with more files than this is not where somebody keeps stores.
MAX_FILES_SCANNED = 500


def check_exists(settings: Settings) -> None:
    """For callers who only read: a mistyped path must not become an empty store."""
    if missing := missing_store_message(settings):
        raise StoreError(missing)


def missing_store_message(settings: Settings) -> str | None:
    """What to say if the file that the settings name is not there; None if it is, or is no file.

    The default store is nobody's typing; it is made by whoever comes first. The file of another tenant is its server's.
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
    meant = f" The nearest there is: {nearest}." if nearest else ""
    return f"There is no store at {path}.{meant} Storing the first memory there makes one."


def closest_store(path: Path) -> Path | None:
    """Of the stores in the same folder and the default one, that whose path reads most alike."""
    known = {
        str(file): file for file in [*_stores_in(path.parent), default_store()] if is_store(file)
    }
    found = difflib.get_close_matches(str(path), known, n=1, cutoff=0)
    return known[found[0]] if found else None


def is_store(file: Path) -> bool:
    """Whether the file is a Trivet store, by its first bytes."""
    try:
        with file.open("rb") as opened:
            head = opened.read(_OWNER.stop)
    except OSError:  # not there, or not for us to read: not what the caller meant
        return False
    return head.startswith(_SQLITE) and head[_OWNER] == APPLICATION_ID.to_bytes(4, "big")


def _stores_in(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (file for file in islice(folder.iterdir(), MAX_FILES_SCANNED) if file.is_file())
