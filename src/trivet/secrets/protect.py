"""Takes secrets and private spans out of a memory before anything is stored, and puts them back on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from trivet.errors import InvalidInput
from trivet.secrets.detect import Found, find
from trivet.secrets.keys import KeyRing
from trivet.secrets.placeholder import PRIVATE, Name, filled, names_in, placeholder
from trivet.secrets.private import private_spans
from trivet.secrets.seal import seal, unseal
from trivet.types import Memory, Revision, Sealed

Mode = Literal["redact", "refuse", "off"]
# A placeholder may be longer than the password it stands for; a title or tag that would grow past its bound goes whole.
LONGEST_TITLE = 300
WHOLE_FIELDS = ("tags", "expanded_keywords")


class Protected(msgspec.Struct, frozen=True):
    """A memory that may be stored, with its earlier revisions, and what was taken out of them."""

    memory: Memory
    history: tuple[Revision, ...] = ()
    secrets: tuple[Sealed, ...] = ()
    redacted: Mapping[str, int] = {}


class Guard:
    """What stands between a caller and the store. Keys are asked for only when something was found."""

    def __init__(self, mode: Mode, keys: KeyRing) -> None:
        self.mode = mode
        self.keys = keys

    def protect(
        self,
        memory: Memory,
        revision: int,
        held: Callable[[], Sequence[Sealed]],
        history: tuple[Revision, ...] = (),
        *,
        refuse: bool = True,
        recognise: bool = True,
    ) -> Protected:
        """The memory as it may be stored as `revision`. `held` gives the secrets it has already, if they are needed.

        Without `recognise` a value that is held already is sealed once more under a name of its own: for a writer who
        must not learn by the name of a placeholder that a guess was right.
        """
        if refuse and self.mode != "off" and find(memory.scope):
            raise InvalidInput("scope: it looks like a secret, and a scope is shown everywhere. Name a place instead.")
        revisions = [*(old.memory for old in history), memory]
        if not any(self._suspicious(one) for one in revisions):
            return Protected(memory, history)
        if refuse and self.mode == "refuse":
            self._refuse(memory)
        taking = _Taking(self, memory.id, held(), recognise)
        cleaned = [taking.out_of(old.memory, old.revision) for old in history]
        taking.counts.clear()
        protected = taking.out_of(memory, revision)
        past = tuple(msgspec.structs.replace(old, memory=clean) for old, clean in zip(history, cleaned, strict=True))
        return Protected(protected, past, tuple(taking.new), dict(taking.counts))

    def spans(self, text: str) -> list[Found]:
        """Everything in a text that must not be stored as it is, from left to right."""
        private = [Found(PRIVATE, start, stop) for start, stop in private_spans(text)]
        if self.mode == "off":
            return private
        secrets = [
            found
            for found in find(text)
            if not any(found.start < other.stop and other.start < found.stop for other in private)
        ]
        return sorted([*private, *secrets], key=lambda found: found.start)

    def without_secrets(self, text: str) -> str:
        """For a query or a message: what must not travel on is left out, and nothing is kept of it."""
        for found in reversed(self.spans(text)):
            text = f"{text[: found.start]}{placeholder(found.kind, 1)}{text[found.stop :]}"
        return text

    def masked(self, text: str) -> tuple[str, dict[str, int]]:
        """For what waits unsealed: without its private parts and, whatever the mode, its secrets; and how many."""
        private = [Found(PRIVATE, start, stop) for start, stop in private_spans(text)]
        hidden = [(found.start, found.stop) for found in private]
        secrets = [
            one for one in find(text) if not any(one.start < stop and start < one.stop for start, stop in hidden)
        ]
        counts = Counter(found.kind for found in secrets)
        for found in sorted([*private, *secrets], key=lambda one: one.start, reverse=True):
            instead = "" if found.kind == PRIVATE else placeholder(found.kind, 1)
            text = f"{text[: found.start]}{instead}{text[found.stop :]}"
        return text, dict(counts)

    def revealed(self, memory: Memory, held: Sequence[Sealed]) -> Memory:
        """The memory with its secrets back in their places."""
        values = self.opened(memory.id, held)
        return _map_texts(memory, lambda _, text: filled(text, values))

    def opened(self, memory: str, held: Sequence[Sealed]) -> dict[Name, str]:
        return {(sealed.kind, sealed.number): unseal(self.keys, memory, sealed) for sealed in held}

    def _suspicious(self, memory: Memory) -> bool:
        rest = "\n".join(text for field, text in _texts(memory) if field != "content")
        return bool(self.spans(memory.content) or (rest and self.spans(rest)))

    def _refuse(self, memory: Memory) -> None:
        for field, text in _texts(memory):
            kinds = {found.kind for found in self.spans(text)} - {PRIVATE}
            if kinds:
                raise InvalidInput(
                    f"{field}: it holds what looks like a secret ({', '.join(sorted(kinds))}). Nothing was stored; "
                    "leave it out, or set secrets = redact to have it encrypted."
                )


class _Taking:
    """Numbers what is taken out of one memory: the same value keeps its name, another gets the next number."""

    def __init__(self, guard: Guard, memory: str, held: Sequence[Sealed], recognise: bool) -> None:
        self._guard = guard
        self._memory = memory
        known = guard.opened(memory, held) if recognise else {}
        # One that was sealed twice is known by its first name.
        self._names = {(name[0], known[name]): name for name in sorted(known, reverse=True)}
        self._taken = {(sealed.kind, sealed.number) for sealed in held}
        self.new: list[Sealed] = []
        self.counts: Counter[str] = Counter()

    def out_of(self, memory: Memory, revision: int) -> Memory:
        # A placeholder that somebody typed, or that came with an import, must not be mistaken for one of ours.
        self._taken.update(name for _, text in _texts(memory) for name in names_in(text))
        return _map_texts(memory, lambda field, text: self._clean(field, text, revision))

    def _clean(self, field: str, text: str, revision: int) -> str:
        spans = self._guard.spans(text)
        if not spans:
            return text
        if field in WHOLE_FIELDS:
            return self._take(Found(spans[0].kind, 0, len(text)), field, text, revision)
        parts, end = [], 0
        for found in spans:
            parts += [text[end : found.start], self._take(found, field, text, revision)]
            end = found.stop
        clean = "".join([*parts, text[end:]])
        if field == "title" and len(clean) > LONGEST_TITLE:
            return self._take(Found(spans[0].kind, 0, len(text)), field, text, revision)
        return clean

    def _take(self, found: Found, field: str, text: str, revision: int) -> str:
        value = text[found.start : found.stop]
        self.counts[found.kind] += 1
        if (found.kind, value) not in self._names:
            name = self._next_name(found.kind)
            key = self._guard.keys.current()
            self.new.append(seal(key, self._memory, revision, field, *name, value))
            self._names[found.kind, value] = name
        return placeholder(*self._names[found.kind, value])

    def _next_name(self, kind: str) -> Name:
        number = 1 + max((taken for of, taken in self._taken if of == kind), default=0)
        self._taken.add((kind, number))
        return kind, number


def _texts(memory: Memory) -> Iterator[tuple[str, str]]:
    """Every text of a memory that its writer chose freely, with the name of its field."""
    yield "content", memory.content
    if memory.title:
        yield "title", memory.title
    yield from (("tags", tag) for tag in memory.tags)
    yield from (("expanded_keywords", keyword) for keyword in memory.expanded_keywords)
    if memory.source:
        yield "source", memory.source.uri


def _map_texts(memory: Memory, change: Callable[[str, str], str]) -> Memory:
    source = memory.source
    return msgspec.structs.replace(
        memory,
        content=change("content", memory.content),
        title=change("title", memory.title) if memory.title else memory.title,
        tags=tuple(dict.fromkeys(change("tags", tag) for tag in memory.tags)),
        expanded_keywords=tuple(dict.fromkeys(change("expanded_keywords", word) for word in memory.expanded_keywords)),
        source=msgspec.structs.replace(source, uri=change("source", source.uri)) if source else None,
    )
