"""Preparation of a file's parts, and their matching with memories.

A part matches the memory with the same content, else the one in the same place.
"""

from __future__ import annotations

import hashlib
import hmac
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from trivet.common.clock import parse_time
from trivet.errors import InvalidInput
from trivet.memory.engine import Engine
from trivet.sources.files.parts import Options, Part
from trivet.sources.files.vault import FORMATS, Format, TextFile, format_of
from trivet.store.records import VaultPart

_VAULTS = uuid.uuid5(uuid.NAMESPACE_URL, "trivet-vault")


class PreparedPart(msgspec.Struct, frozen=True):
    part: Part
    place: str
    content_digest: str
    whole_digest: str
    about: str


class Match(msgspec.Struct, frozen=True):
    prepared: PreparedPart
    known: VaultPart | None


class UnmatchedParts:
    """Known parts not yet found in a file. Each can be taken once."""

    def __init__(self, parts: Iterable[VaultPart] = ()) -> None:
        self._parts: dict[str, VaultPart] = {}
        self._by_content: dict[str, list[str]] = defaultdict(list)
        self._by_place: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.add(parts)

    def add(self, parts: Iterable[VaultPart]) -> None:
        for part in parts:
            if not part.said:  # purged by a person: it must not return
                continue
            self._parts[part.id] = part
            self._by_content[part.content].append(part.id)
            self._by_place[part.path, part.place].append(part.id)

    def take(self, id: str | None) -> VaultPart | None:
        return self._parts.pop(id, None) if id else None

    def take_content(self, digest: str) -> VaultPart | None:
        return self._take_first(self._by_content.get(digest, []))

    def take_place(self, path: str, place: str, content: str | None = None) -> VaultPart | None:
        """Take the part in a place, with `content` only if its digest is equal."""
        ids = self._by_place.get((path, place), [])
        return self._take_first(
            [id for id in ids if content is None or self._has_content(id, content)]
        )

    @property
    def left(self) -> tuple[VaultPart, ...]:
        return tuple(self._parts.values())

    def _has_content(self, id: str, content: str) -> bool:
        return id in self._parts and self._parts[id].content == content

    def _take_first(self, ids: Sequence[str]) -> VaultPart | None:
        return next((part for id in ids if (part := self.take(id))), None)


def match_within(
    path: str, prepared: Sequence[PreparedPart], known: Sequence[VaultPart]
) -> tuple[list[Match], tuple[VaultPart, ...]]:
    """Match a file's parts with its former ones; also return the former ones left over.

    Content counts before place, as an inserted list item must not rename all that follow.
    """
    unmatched = UnmatchedParts(known)
    matches = [
        Match(
            one, _named(one, unmatched) or unmatched.take_place(path, one.place, one.content_digest)
        )
        for one in prepared
    ]
    matches = _completed(matches, lambda one: _by_content(one, unmatched))
    return _completed(matches, lambda one: _by_place(one, path, unmatched)), unmatched.left


def match_moved(matches: Sequence[Match], unmatched: UnmatchedParts) -> list[Match]:
    """Match new parts with those of other files, by content.

    From the file that most of them came from, match more by place.
    """
    found = _completed(matches, lambda one: _named(one, unmatched) or _by_content(one, unmatched))
    former = Counter(
        one.known.path
        for one, old in zip(found, matches, strict=True)
        if one.known and not old.known
    )
    if not former:
        return found
    ((path, _),) = former.most_common(1)
    return _completed(found, lambda one: _by_place(one, path, unmatched))


def _completed(
    matches: Sequence[Match], find: Callable[[PreparedPart], VaultPart | None]
) -> list[Match]:
    return [
        match if match.known else Match(match.prepared, find(match.prepared)) for match in matches
    ]


def _named(one: PreparedPart, unmatched: UnmatchedParts) -> VaultPart | None:
    return unmatched.take(str(one.part.fields.get("id", "")))


def _by_content(one: PreparedPart, unmatched: UnmatchedParts) -> VaultPart | None:
    return None if "id" in one.part.fields else unmatched.take_content(one.content_digest)


def _by_place(one: PreparedPart, path: str, unmatched: UnmatchedParts) -> VaultPart | None:
    return None if "id" in one.part.fields else unmatched.take_place(path, one.place)


def new_id_of(vault: str, path: str, place: str, ids_in_use: Container[str]) -> str:
    """Return the id of a place, or another one if a part that moved away kept it."""
    name, number = f"{vault}\n{path}\n{place}", 1
    while (
        id := str(uuid.uuid5(_VAULTS, name if number == 1 else f"{name}\n{number}"))
    ) in ids_in_use:
        number += 1
    return id


MAX_TAGS = 50
# Raised by readers of files that are not of their apparent format.
_UNEXPECTED = (OverflowError, AttributeError, KeyError, TypeError, ValueError, IndexError)


class ParsedFile(msgspec.Struct, frozen=True):
    path: str
    text: TextFile
    format: Format
    parts: tuple[PreparedPart, ...]


def prepare(engine: Engine, path: str, text: TextFile, options: Options) -> ParsedFile:
    if engine.guard.spans(path):
        raise InvalidInput(
            "its name looks like a secret, and file names are not encrypted. Rename it"
        )
    try:
        format = format_of(path, text.text)
        parts = tuple(numbered(format.read(path, text.text)))
    except _UNEXPECTED as error:
        raise InvalidInput(
            f"it does not match its apparent format ({type(error).__name__}: {error})"
        ) from None
    return ParsedFile(path, text, format, tuple(_prepared(engine, part, options) for part in parts))


def stamp_of(format: Format, options: Options) -> str:
    """Return a stamp that changes with the reader and the options, to read files again."""
    return f"{format.stamp} {_hash(msgspec.json.encode(options))[:12]}"


def stamps(options: Options) -> frozenset[str]:
    return frozenset(stamp_of(format, options) for format in FORMATS)


def numbered(parts: Iterator[Part]) -> Iterator[Part]:
    """Number the parts and make their places unique, such as `... (2)`."""
    counts: Counter[str] = Counter()
    for order, part in enumerate(parts):
        counts[part.place] += 1
        place = part.place if counts[part.place] == 1 else f"{part.place} ({counts[part.place]})"
        about = msgspec.structs.replace(part.about, order=order)
        yield msgspec.structs.replace(part, place=place, about=about)


def _prepared(engine: Engine, part: Part, options: Options) -> PreparedPart:
    fields = _fields(engine, part, options)
    other_fields = msgspec.json.encode(sorted(fields.items())).decode()
    clean = engine.guard.without_secrets
    digest = (
        _keyed(engine)
        if engine.guard.spans(part.content) or engine.guard.spans(other_fields)
        else _hash
    )
    return PreparedPart(
        part=msgspec.structs.replace(part, fields=fields),
        place=clean(part.place),
        content_digest=digest(part.content.encode()),
        whole_digest=digest(f"{part.content}\n{other_fields}".encode()),
        about=msgspec.json.encode(_cleaned(msgspec.to_builtins(part.about), clean)).decode(),
    )


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """Clean texts separately: an unclosed private tag must hide no other text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {name: _cleaned(inner, clean) for name, inner in value.items()}
    return [_cleaned(inner, clean) for inner in value] if isinstance(value, list | tuple) else value


def _fields(engine: Engine, part: Part, options: Options) -> dict[str, Any]:
    """Apply the options and drop unusable values, which may serve other programs."""
    fields = dict(part.fields)
    if "id" in fields:
        return fields
    if fields.get("category") not in engine.settings.categories:
        fields.pop("category", None)
    if options.category:
        fields.setdefault("category", options.category)
    if options.scope:
        fields["scope"] = options.scope
    fields["tags"] = tuple(dict.fromkeys((*fields.get("tags", ()), *options.tags)))[:MAX_TAGS]
    for name, read in (("importance", _importance), ("sensitive", _truth), ("created_at", _time)):
        if isinstance(fields.get(name), str) and (value := read(fields.pop(name))) is not None:
            fields[name] = value
    return fields


def _importance(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _truth(text: str) -> bool | None:
    return {"true": True, "yes": True, "false": False, "no": False}.get(text.lower())


def _time(text: str) -> str | None:
    try:
        return parse_time(text, "created_at")
    except InvalidInput:
        return None


def _keyed(engine: Engine) -> Callable[[bytes], str]:
    """Return a keyed digest, as a plain one would help to guess secrets."""
    key = engine.guard.keys.current().secret
    return lambda data: hmac.new(key, data, hashlib.sha256).hexdigest()[:32]


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def default_category(format: Format, known: Sequence[str]) -> str:
    return next((name for name in (format.category, "facts") if name in known), known[0])
