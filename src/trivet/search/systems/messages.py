"""Requests to external systems and their answers: filled templates, validated hits, mapped ids."""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from trivet.search.fuse.fusion import MAX_SCORE
from trivet.settings.systems import FETCH_K, PLACEHOLDERS, QUERY, WORDS, ExternalSystem
from trivet.types import Value

# About 500 tokens per hit, the same as for a memory.
TEXT_CHARACTERS = 2_000
TITLE_CHARACTERS = 300
ID_CHARACTERS = 2_000
# Without scores, a hit scores 10 / (10 + rank).
PLACE_CONSTANT = 10.0

_NOTICE = re.compile(r"Text inside memory-data tags with nonce ([0-9a-f]{12}) was stored earlier\.")
_control = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_unprintable = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

RawHit = dict[str, Any]


class SystemFailed(Exception):
    """A request without a usable answer; `quoted` is the system's own, untrusted text.

    Agents see the message, and only `trivet doctor` shows `quoted`.
    """

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


class SystemQuery(msgspec.Struct, frozen=True):
    query: str
    words: tuple[str, ...]


class SystemHit(Value, frozen=True, kw_only=True):
    """A validated hit; `common`: its id is a URI or path that other systems share."""

    id: str
    common: bool
    score: float
    text: str = ""
    title: str | None = None
    line: int | None = None


class Reply(Value, frozen=True, kw_only=True):
    hits: tuple[SystemHit, ...] = ()
    floor: float = 0.0
    ranks_only: bool = False
    notes: tuple[str, ...] = ()


def decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise SystemFailed(
            "its answer is not JSON" if text.strip() else "its answer is empty", text
        ) from None


def raw_hits(value: Any, system: ExternalSystem) -> Iterator[RawHit]:
    found = value if isinstance(value, list) and system.hits == "hits" else at(value, system.hits)
    if not isinstance(found, list):
        where = f"at {system.hits!r}" if system.hits else "in its answer"
        raise SystemFailed(f"there is no list of hits {where}")
    for hit in found:
        yield (
            {
                name: at(hit, getattr(system, name))
                for name in ("id", "score", "text", "title", "line")
            }
            if isinstance(hit, dict | list)
            else {"id": hit}
        )


def at(value: Any, path: str) -> Any:
    """Return the value at a path such as `chunks.0.text`, or None."""
    for step in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def reply_of(raw: Iterable[RawHit], system: ExternalSystem, names: IdMap) -> Reply:
    wrong: Counter[str] = Counter()
    hits = [hit for one in raw if (hit := _checked(one, system, names, wrong)) is not None]
    scored = [(score, hit) for score, hit in hits if score is not None]
    ranks_only = len(scored) < len(hits)
    if ranks_only:
        best = [
            _scored(hit, PLACE_CONSTANT / (PLACE_CONSTANT + place))
            for place, (_, hit) in enumerate(hits, 1)
        ]
    else:
        ordered = sorted(scored, key=lambda pair: -pair[0])  # stable sort: ties keep their order
        best = [_scored(hit, score) for score, hit in ordered]
    kept = _once(best, wrong)[: system.fetch_k]
    own = sum(not hit.common for hit in kept)
    if own and system.map:
        wrong["not in its map, kept under their own ids"] = own
    if ranks_only and scored:
        wrong["without a score, so ranks are used instead"] = len(hits) - len(scored)
    floor = 0.0 if ranks_only else _floor(kept, system)
    notes = tuple(f"{count} of its hits {what}" for what, count in wrong.items())
    return Reply(hits=tuple(kept), floor=floor, ranks_only=ranks_only, notes=notes)


def _checked(
    raw: RawHit, system: ExternalSystem, names: IdMap, wrong: Counter[str]
) -> tuple[float | None, SystemHit] | None:
    id = raw.get("id")
    number = isinstance(id, int) and not isinstance(id, bool)
    common, is_common = names.of(str(id), number) if number or _usable(id) else ("", False)
    if not _usable(common):  # checked again after mapping: a URI may encode control characters
        wrong["without a usable id"] += 1
        return None
    given = raw.get("score")
    score = None if given is None else _number(given)
    if given is not None and score is None:
        wrong["with a score that is not a finite number"] += 1
        return None
    if score is not None and system.lower_is_better:
        score = -score
    if score is not None and system.floor is not None and score < system.floor:
        wrong[f"with a score below the floor of {system.floor:g}"] += 1
        return None
    line, title = raw.get("line"), raw.get("title")
    return score, SystemHit(
        id=common,
        common=is_common,
        score=0.0,
        text=_bounded(raw.get("text"), TEXT_CHARACTERS),
        title=_bounded(title, TITLE_CHARACTERS) or None,
        line=line if isinstance(line, int) and not isinstance(line, bool) and line > 0 else None,
    )


def _usable(id: Any) -> bool:
    return isinstance(id, str) and 0 < len(id) <= ID_CHARACTERS and not _control.search(id)


def _number(given: Any) -> float | None:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    try:
        number = float(given)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) <= MAX_SCORE else None


def _bounded(text: Any, most: int) -> str:
    return clean(text[:most]) if isinstance(text, str) else ""


def clean(text: str) -> str:
    """Remove terminal control characters and lone surrogates."""
    return _unprintable.sub("", text.encode("utf-8", "replace").decode())


def _scored(hit: SystemHit, score: float) -> SystemHit:
    return SystemHit(
        id=hit.id, common=hit.common, score=score, text=hit.text, title=hit.title, line=hit.line
    )


def _once(hits: Iterable[SystemHit], wrong: Counter[str]) -> list[SystemHit]:
    kept: dict[tuple[str, int | None], SystemHit] = {}
    for hit in hits:
        if (hit.id, hit.line) in kept:
            wrong["with a repeated id"] += 1
        else:
            kept[hit.id, hit.line] = hit
    return list(kept.values())


def _floor(hits: list[SystemHit], system: ExternalSystem) -> float:
    if system.floor is not None:
        return system.floor
    return min(0.0, min((hit.score for hit in hits), default=0.0))


_placeholder = re.compile("|".join(map(re.escape, PLACEHOLDERS)))
# Special in the regular expressions of both grep -E and rg.
_special = re.compile(r"[\\.\[{()*+?^$|]")


def filled_arguments(
    command: Sequence[str], system: ExternalSystem, asked: SystemQuery
) -> list[str]:
    """Return a program's arguments; a query loses leading dashes, which would make it an option."""
    values = {**_values(system, asked), QUERY: asked.query.lstrip("- \t\n")}
    return [_filled(part, values) for part in command]


def filled_address(system: ExternalSystem, asked: SystemQuery) -> str:
    values = {mark: quote(value, safe="") for mark, value in _values(system, asked).items()}
    return _filled(system.http, values)


def filled_value(template: Any, system: ExternalSystem, asked: SystemQuery) -> Any:
    """Return a JSON value with its texts filled; a bare {fetch_k} becomes a number."""
    if template == FETCH_K:
        return system.fetch_k
    if isinstance(template, str):
        return _filled(template, _values(system, asked))
    if isinstance(template, dict):
        return {name: filled_value(value, system, asked) for name, value in template.items()}
    if isinstance(template, list | tuple):
        return [filled_value(value, system, asked) for value in template]
    return template


def has_placeholders(parts: Sequence[str]) -> bool:
    return any(mark in part for part in parts for mark in (QUERY, WORDS))


def _values(system: ExternalSystem, asked: SystemQuery) -> dict[str, str]:
    """Join the words with `|`, for programs that take regular expressions."""
    words = "|".join(_special.sub(r"\\\g<0>", word) for word in asked.words)
    return {QUERY: asked.query, WORDS: words, FETCH_K: str(system.fetch_k)}


def _filled(text: str, values: dict[str, str]) -> str:
    """Fill in one pass, so that a placeholder in a query stays text."""
    return _placeholder.sub(lambda mark: values[mark[0]], text)


def auth_headers(system: ExternalSystem) -> dict[str, str]:
    """Return the header with the key, read from the environment."""
    if not system.key_env:
        return {}
    key = os.environ.get(system.key_env, "")
    if not key:
        raise SystemFailed(f"the environment variable {system.key_env} for its key is not set")
    return {"Authorization": f"Bearer {key}"}


# About ten million short lines; a larger map is a mistake.
MAX_MAP_BYTES = 2**30

Stamp = tuple[int, int, int]


class IdMap:
    def __init__(self, system: ExternalSystem) -> None:
        self._file = Path(system.map).expanduser() if system.map else None
        # Longest prefix first: a rule for a folder overrides that of its parent.
        self._prefixes = sorted(system.rewrite.items(), key=lambda pair: (-len(pair[0]), pair[0]))
        self._map: Mapping[str, str] = {}
        self._stamp: Stamp | None = None
        self._guard = threading.Lock()

    def of(self, id: str, number: bool) -> tuple[str, bool]:
        """Return the common id and True, or the unmapped id and False."""
        known = self._known()
        if id in known:
            return _plain(known[id]), True
        for prefix, named in self._prefixes:
            if id.startswith(prefix):
                return _plain(named + id[len(prefix) :]), True
        # Numbers, and ids that a map leaves out, are never common ids.
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
                raise SystemFailed("its id map cannot be read", f"{self._file}: {error}") from None
            return self._map


def read_map(path: Path) -> Mapping[str, str]:
    """Read a JSON object from ids to URIs, or lines of id, tab, URI."""
    if path.stat().st_size > MAX_MAP_BYTES:
        raise ValueError(f"it is larger than {MAX_MAP_BYTES} bytes")
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
            raise ValueError(f"line {number} is not an id, a tab and a URI")
        if tab:
            known[id] = uri.strip()
    return known


def _plain(uri: str) -> str:
    if uri.startswith("file://"):
        try:
            uri = unquote(urlsplit(uri).path)
        except ValueError:
            return uri
    while uri.startswith("./"):
        uri = uri[2:]
    return uri


def markers(nonce: str) -> tuple[str, str]:
    """Return the marks around stored text in MCP answers."""
    return f"<memory-data nonce={nonce}>", f"</memory-data nonce={nonce}>"


def unmarked(answer: Any) -> Any:
    """Remove the marks from another Trivet's answer."""
    notice = answer.get("notice") if isinstance(answer, dict) else None
    found = _NOTICE.match(notice) if isinstance(notice, str) else None
    return _bare(answer, markers(found[1])) if found else answer


def _bare(value: Any, around: tuple[str, str]) -> Any:
    if isinstance(value, dict):
        return {_bare(name, around): _bare(inner, around) for name, inner in value.items()}
    if isinstance(value, list):
        return [_bare(inner, around) for inner in value]
    before, after = around
    if isinstance(value, str) and value.startswith(before):
        return value.removeprefix(before).removesuffix(after)
    return value
