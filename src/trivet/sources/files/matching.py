"""Which memory a part of a file is: the one with the same content, else the one in the same place, else a new one."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Sequence

import msgspec

from trivet.sources.files.parts import Part
from trivet.store.records import KnownPart

_VAULTS = uuid.uuid5(uuid.NAMESPACE_URL, "trivet-vault")


class PreparedPart(msgspec.Struct, frozen=True):
    """A part with what the ledger keeps of it; the digests are of its content, and of content and fields."""

    part: Part
    place: str
    content_digest: str
    whole_digest: str
    about: str


class Match(msgspec.Struct, frozen=True):
    prepared: PreparedPart
    known: KnownPart | None


class UnmatchedParts:
    """Known parts that have not been found in a file yet. Each can be taken once."""

    def __init__(self, parts: Iterable[KnownPart] = ()) -> None:
        self._parts: dict[str, KnownPart] = {}
        self._by_content: dict[str, list[str]] = defaultdict(list)
        self._by_place: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.add(parts)

    def add(self, parts: Iterable[KnownPart]) -> None:
        for part in parts:
            if not part.said:  # purged by a person: it must not come back
                continue
            self._parts[part.id] = part
            self._by_content[part.content].append(part.id)
            self._by_place[part.path, part.place].append(part.id)

    def take(self, id: str | None) -> KnownPart | None:
        return self._parts.pop(id, None) if id else None

    def take_content(self, digest: str) -> KnownPart | None:
        return self._take_first(self._by_content.get(digest, []))

    def take_place(self, path: str, place: str, content: str | None = None) -> KnownPart | None:
        """The part in a place; with `content`, only if its digest is the same."""
        ids = self._by_place.get((path, place), [])
        return self._take_first([id for id in ids if content is None or self._has_content(id, content)])

    @property
    def left(self) -> tuple[KnownPart, ...]:
        return tuple(self._parts.values())

    def _has_content(self, id: str, content: str) -> bool:
        return id in self._parts and self._parts[id].content == content

    def _take_first(self, ids: Sequence[str]) -> KnownPart | None:
        return next((part for id in ids if (part := self.take(id))), None)


def match_within(
    path: str, prepared: Sequence[PreparedPart], known: Sequence[KnownPart]
) -> tuple[list[Match], tuple[KnownPart, ...]]:
    """Matches the parts of a file with those it had before; also returns the known parts without a match.

    Content counts before place: a list item inserted before others must not rename them all.
    """
    unmatched = UnmatchedParts(known)
    matches = [
        Match(one, _named(one, unmatched) or unmatched.take_place(path, one.place, one.content_digest))
        for one in prepared
    ]
    matches = _completed(matches, lambda one: _by_content(one, unmatched))
    return _completed(matches, lambda one: _by_place(one, path, unmatched)), unmatched.left


def match_moved(matches: Sequence[Match], unmatched: UnmatchedParts) -> list[Match]:
    """Parts that are new in this file may have moved from another. If some came from one file, more may by place."""
    found = _completed(matches, lambda one: _named(one, unmatched) or _by_content(one, unmatched))
    former = Counter(one.known.path for one, old in zip(found, matches, strict=True) if one.known and not old.known)
    if not former:
        return found
    ((path, _),) = former.most_common(1)
    return _completed(found, lambda one: _by_place(one, path, unmatched))


def _completed(matches: Sequence[Match], find: Callable[[PreparedPart], KnownPart | None]) -> list[Match]:
    return [match if match.known else Match(match.prepared, find(match.prepared)) for match in matches]


def _named(one: PreparedPart, unmatched: UnmatchedParts) -> KnownPart | None:
    """For a mirrored file, which names its memory."""
    return unmatched.take(str(one.part.fields.get("id", "")))


def _by_content(one: PreparedPart, unmatched: UnmatchedParts) -> KnownPart | None:
    return None if "id" in one.part.fields else unmatched.take_content(one.content_digest)


def _by_place(one: PreparedPart, path: str, unmatched: UnmatchedParts) -> KnownPart | None:
    return None if "id" in one.part.fields else unmatched.take_place(path, one.place)


def new_id_of(vault: str, path: str, place: str, ids_in_use: Container[str]) -> str:
    """The same id for the same place, unless a part that moved away kept that id."""
    name, number = f"{vault}\n{path}\n{place}", 1
    while (id := str(uuid.uuid5(_VAULTS, name if number == 1 else f"{name}\n{number}"))) in ids_in_use:
        number += 1
    return id
