"""Which memory a part of a file is: the one that said the same, else the one in the same place, else a new one."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence

import msgspec

from trivet.sources.files.values import Part
from trivet.store.records import KnownPart

_VAULTS = uuid.uuid5(uuid.NAMESPACE_URL, "trivet-vault")


class Prepared(msgspec.Struct, frozen=True):
    """A part with what the ledger keeps of it."""

    part: Part
    place: str
    content: str
    said: str
    about: str


class Match(msgspec.Struct, frozen=True):
    prepared: Prepared
    known: KnownPart | None


class Lost:
    """Parts that are not where they were. Each can be found again once."""

    def __init__(self, parts: Iterable[KnownPart] = ()) -> None:
        self._parts: dict[str, KnownPart] = {}
        self._by_content: dict[str, list[str]] = defaultdict(list)
        self._by_place: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.add(parts)

    def add(self, parts: Iterable[KnownPart]) -> None:
        for part in parts:
            if not part.said:  # purged by hand: nobody is looking for it
                continue
            self._parts[part.id] = part
            self._by_content[part.content].append(part.id)
            self._by_place[part.path, part.place].append(part.id)

    def take(self, id: str | None) -> KnownPart | None:
        return self._parts.pop(id, None) if id else None

    def take_content(self, digest: str) -> KnownPart | None:
        return self._take_first(self._by_content.get(digest, []))

    def take_place(self, path: str, place: str, content: str | None = None) -> KnownPart | None:
        """The part in a place; with `content`, only if it says the same."""
        ids = self._by_place.get((path, place), [])
        return self._take_first([id for id in ids if content is None or self._says(id, content)])

    @property
    def left(self) -> tuple[KnownPart, ...]:
        return tuple(self._parts.values())

    def _says(self, id: str, content: str) -> bool:
        return id in self._parts and self._parts[id].content == content

    def _take_first(self, ids: Sequence[str]) -> KnownPart | None:
        return next((part for id in ids if (part := self.take(id))), None)


def match_within(
    path: str, prepared: Sequence[Prepared], known: Sequence[KnownPart]
) -> tuple[list[Match], tuple[KnownPart, ...]]:
    """The parts of a file and those it had before; and which of these are left over.

    What says the same is the same, wherever it stands now: a point put before others must not rename them all.
    """
    lost = Lost(known)
    matches = [
        Match(one, lost.take(str(one.part.fields.get("id", ""))) or lost.take_place(path, one.place, one.content))
        for one in prepared
    ]
    matches = [match if match.known else Match(match.prepared, _again(match.prepared, lost)) for match in matches]
    matches = [match if match.known else Match(match.prepared, _there(match.prepared, path, lost)) for match in matches]
    return matches, lost.left


def _again(one: Prepared, lost: Lost) -> KnownPart | None:
    """A file that says which memory it is needs no guessing."""
    return None if "id" in one.part.fields else lost.take_content(one.content)


def _there(one: Prepared, path: str, lost: Lost) -> KnownPart | None:
    return None if "id" in one.part.fields else lost.take_place(path, one.place)


def match_moved(matches: Sequence[Match], lost: Lost) -> list[Match]:
    """Parts that are new here may be lost elsewhere. Where some of a file came from, the rest is sought by place."""
    found = [
        match
        if match.known
        else Match(
            match.prepared, lost.take(str(match.prepared.part.fields.get("id", ""))) or _again(match.prepared, lost)
        )
        for match in matches
    ]
    former = Counter(one.known.path for one, old in zip(found, matches, strict=True) if one.known and not old.known)
    for path, _ in former.most_common(1):
        found = [match if match.known else Match(match.prepared, _there(match.prepared, path, lost)) for match in found]
    return found


def new_id_of(vault: str, path: str, place: str, taken: Container[str]) -> str:
    """The same for the same place, unless a part that has moved away took that id along."""
    name, number = f"{vault}\n{path}\n{place}", 1
    while (id := str(uuid.uuid5(_VAULTS, name if number == 1 else f"{name}\n{number}"))) in taken:
        number += 1
    return id
