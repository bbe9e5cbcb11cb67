"""What a system's ids mean: a map from its ids to URIs, read again when the file changes; prefixes rewritten."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from trivet.search.systems.reply import SystemFailed
from trivet.settings.systems import OtherSystem

# Ten million short lines; a larger map is a mistake.
MOST_BYTES = 2**30

Stamp = tuple[int, int, int]


class IdMap:
    """The ids of one system. Threads may share it."""

    def __init__(self, system: OtherSystem) -> None:
        self._file = Path(system.map).expanduser() if system.map else None
        # The longest prefix first: what is said of a folder holds against what is said of the one above.
        self._prefixes = sorted(system.rewrite.items(), key=lambda pair: (-len(pair[0]), pair[0]))
        self._map: Mapping[str, str] = {}
        self._stamp: Stamp | None = None
        self._guard = threading.Lock()

    def of(self, id: str, number: bool) -> tuple[str, bool]:
        """The common id and True; or its own id and False where neither map nor prefix says what it means here."""
        known = self._known()
        if id in known:
            return _plain(known[id]), True
        for prefix, named in self._prefixes:
            if id.startswith(prefix):
                return _plain(named + id[len(prefix) :]), True
        # A number is nobody else's id, and an id that a map leaves out is not meant to be one.
        return (id, False) if number or self._file is not None else (_plain(id), True)

    def _known(self) -> Mapping[str, str]:
        if self._file is None:
            return self._map
        with self._guard:
            try:
                found = self._file.stat()
                stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
                if stamp != self._stamp:
                    self._map = read_map(self._file)
                    self._stamp = stamp
            except (OSError, ValueError) as error:
                raise SystemFailed("its map cannot be read", f"{self._file}: {error}") from None
            return self._map


def read_map(path: Path) -> Mapping[str, str]:
    """A JSON object from id to URI, or lines of id, tabulator, URI."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES} bytes")
    text = path.read_text(encoding="utf-8")
    return _from_json(text) if path.suffix == ".json" else _from_lines(text)


def _from_json(text: str) -> Mapping[str, str]:
    try:
        value: Any = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict) or not all(isinstance(uri, str) for uri in value.values()):
        raise ValueError("it must be one JSON object from ids to URIs")
    return value


def _from_lines(text: str) -> Mapping[str, str]:
    known: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        id, tab, uri = line.partition("\t")
        if line.strip() and not (tab and id and uri.strip()):
            raise ValueError(f"line {number} is not an id, a tabulator and a URI")
        if tab:
            known[id] = uri.strip()
    return known


def _plain(uri: str) -> str:
    """One writing for one file. What only looks like the address of one stays as it is."""
    if uri.startswith("file://"):
        try:
            uri = unquote(urlsplit(uri).path)
        except ValueError:
            return uri
    while uri.startswith("./"):
        uri = uri[2:]
    return uri
