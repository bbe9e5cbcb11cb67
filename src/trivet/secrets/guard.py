"""The guard that takes secrets out of memories before they are stored, and their encryption.

AES-256-GCM binds a secret to its memory and field; moved elsewhere, it does not decrypt.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec

from trivet.errors import InvalidInput, SecretError
from trivet.secrets.key_ring import Key, KeyRing
from trivet.secrets.masking import PRIVATE, Name, fill_placeholders, placeholder, placeholder_names
from trivet.types import Memory, Revision, Sealed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from trivet.secrets.detect import SecretSpan


# 96 bits by the standard; random, because several processes share a key.
NONCE_BYTES = 12


def seal(
    key: Key, memory: str, revision: int, field: str, kind: str, number: int, value: str
) -> Sealed:
    nonce = os.urandom(NONCE_BYTES)
    bare = Sealed(
        revision=revision,
        field=field,
        kind=kind,
        number=number,
        key=key.id,
        nonce=nonce,
        sealed=b"",
    )
    text = _cipher(key).encrypt(nonce, value.encode(), _place_of(memory, bare))
    return msgspec.structs.replace(bare, sealed=text)


def unseal(keys: KeyRing, memory: str, sealed: Sealed, note: bool = True) -> str:
    """Return the value; with `note`, record the store as a user of the key."""
    from cryptography.exceptions import InvalidTag

    cipher = _cipher(keys.get(sealed.key, note))
    try:
        return cipher.decrypt(sealed.nonce, sealed.sealed, _place_of(memory, sealed)).decode()
    except InvalidTag:
        raise SecretError(
            f"The {sealed.kind} in {sealed.field} of memory {memory} was damaged or moved. "
            "Restore a backup to read it."
        ) from None


def reseal(keys: KeyRing, key: Key, memory: str, old: Sealed) -> Sealed:
    value = unseal(keys, memory, old)
    return seal(key, memory, old.revision, old.field, old.kind, old.number, value)


def _place_of(memory: str, sealed: Sealed) -> bytes:
    """Return the authenticated data, as JSON so that no two places are encoded alike."""
    return msgspec.json.encode(
        ["trivet", 1, memory, sealed.revision, sealed.field, sealed.kind, sealed.number]
    )


@cache
def _ciphers() -> type[AESGCM]:
    from cryptography.hazmat.primitives.ciphers.aead import (
        AESGCM,
    )  # 55 ms, needed only if there is a secret

    return AESGCM


def _cipher(key: Key) -> AESGCM:
    return _ciphers()(key.secret)


# Only writes import the detector.

Mode = Literal["redact", "refuse", "off"]
# A longer title is sealed whole; placeholders can be longer than secrets.
LONGEST_TITLE = 300
FIELDS_SEALED_WHOLE = ("tags", "expanded_keywords")


class ProtectedMemory(msgspec.Struct, frozen=True):
    memory: Memory
    history: tuple[Revision, ...] = ()
    secrets: tuple[Sealed, ...] = ()
    redacted: Mapping[str, int] = {}


class Guard:
    """The check between callers and the store; it reads keys only when it finds something."""

    def __init__(self, mode: Mode, keys: KeyRing) -> None:
        self.mode = mode
        self.keys = keys

    def protect(
        self,
        memory: Memory,
        revision: int,
        known_secrets: Callable[[], Sequence[Sealed]],
        history: tuple[Revision, ...] = (),
        *,
        refuse: bool = True,
        recognise: bool = True,
    ) -> ProtectedMemory:
        """Return the memory as it may be stored.

        `known_secrets` returns those already sealed for it. Without `refuse`, only redact. Without
        `recognise`, seal known values again, for a writer who must not learn from a placeholder's
        number that a guess was right.
        """
        if refuse:
            self.check_scope(memory.scope)
        history = tuple(map(self._without_secret_names, history))
        spans = self._spans_by_text([*(old.memory for old in history), memory])
        if not spans:
            return ProtectedMemory(memory, history)
        if refuse and self.mode == "refuse":
            _refuse(memory, spans)
        redaction = _Redaction(self, memory.id, spans, known_secrets, recognise)
        cleaned = [redaction.clean(old.memory, old.revision) for old in history]
        redaction.counts.clear()
        protected = redaction.clean(memory, revision)
        past = tuple(
            msgspec.structs.replace(old, memory=clean)
            for old, clean in zip(history, cleaned, strict=True)
        )
        return ProtectedMemory(protected, past, tuple(redaction.new), dict(redaction.counts))

    def check_scope(self, scope: str) -> None:
        from trivet.secrets.detect import find

        if self.mode != "off" and find(scope):
            raise InvalidInput(
                "scope: it looks like a secret, and scopes are shown everywhere. Nothing was "
                "stored; use the name of a place instead."
            )

    def _without_secret_names(self, old: Revision) -> Revision:
        """Clean scope, category and action, which may hold any text in an imported revision."""
        memory, clean = old.memory, self.without_secrets
        named = msgspec.structs.replace(
            memory, scope=clean(memory.scope), category=clean(memory.category)
        )
        return msgspec.structs.replace(old, memory=named, action=clean(old.action))

    def spans(self, text: str) -> list[SecretSpan]:
        return _spans(text, secrets=self.mode != "off")

    def without_secrets(self, text: str) -> str:
        return redact_text(text, secrets=self.mode != "off")

    def masked(self, text: str) -> tuple[str, dict[str, int]]:
        """Return the text for a proposal, and the number of secrets per kind.

        Proposals are not encrypted, so any mode removes secrets.
        """
        spans = _spans(text, secrets=True)
        counts = Counter(found.kind for found in spans if found.kind != PRIVATE)
        for found in reversed(spans):
            instead = "" if found.kind == PRIVATE else placeholder(found.kind, 1)
            text = f"{text[: found.start]}{instead}{text[found.stop :]}"
        return text, dict(counts)

    def revealed(self, memory: Memory, secrets: Callable[[], Sequence[Sealed]]) -> Memory:
        _, values = self.opened(memory.id, secrets)
        return _map_texts(memory, lambda _, text: fill_placeholders(text, values))

    def opened(
        self, memory: str, secrets: Callable[[], Sequence[Sealed]]
    ) -> tuple[Sequence[Sealed], dict[Name, str]]:
        """Return secrets and their values, read again after a key rotation."""
        held = secrets()
        try:
            return held, self._values(memory, held)
        except SecretError:
            again = secrets()
            if again == held:
                raise
            return again, self._values(memory, again)

    def _values(self, memory: str, secrets: Sequence[Sealed]) -> dict[Name, str]:
        return {
            (sealed.kind, sealed.number): unseal(self.keys, memory, sealed) for sealed in secrets
        }

    def _spans_by_text(self, memories: Sequence[Memory]) -> dict[str, list[SecretSpan]]:
        """Scan short fields together first: they hardly ever hold a secret."""
        contents = {memory.content: self.spans(memory.content) for memory in memories}
        fields = (pair for memory in memories for pair in _texts(memory))
        short = list(dict.fromkeys(text for field, text in fields if field != "content"))
        if not any(contents.values()) and not (short and self.spans("\n".join(short))):
            return {}
        return contents | {text: self.spans(text) for text in short}


def redact_text(text: str, secrets: bool = True) -> str:
    for found in reversed(_spans(text, secrets)):
        text = f"{text[: found.start]}{placeholder(found.kind, 1)}{text[found.stop :]}"
    return text


def _spans(text: str, secrets: bool) -> list[SecretSpan]:
    from trivet.secrets.detect import SecretSpan, find, without_overlaps
    from trivet.secrets.masking import private_spans

    private = [SecretSpan(PRIVATE, start, stop) for start, stop in private_spans(text)]
    if not secrets:
        return private
    outside = without_overlaps(private, find(text))
    return sorted([*private, *outside], key=lambda found: found.start)


def _whole(found: SecretSpan, text: str) -> SecretSpan:
    return msgspec.structs.replace(found, start=0, stop=len(text))


def _refuse(memory: Memory, spans: Mapping[str, Sequence[SecretSpan]]) -> None:
    for field, text in _texts(memory):
        kinds = {found.kind for found in spans.get(text, ())} - {PRIVATE}
        if kinds:
            raise InvalidInput(
                f"{field}: it holds what looks like a secret ({', '.join(sorted(kinds))}). "
                "Nothing was stored; leave it out, or set secrets = redact to have it encrypted."
            )


class _Redaction:
    """Replacement of secrets in one memory; equal values share a number."""

    def __init__(
        self,
        guard: Guard,
        memory: str,
        spans: Mapping[str, Sequence[SecretSpan]],
        known_secrets: Callable[[], Sequence[Sealed]],
        recognise: bool,
    ) -> None:
        self._keys = guard.keys
        self._memory = memory
        self._spans = spans
        held, known = guard.opened(memory, known_secrets) if recognise else (known_secrets(), {})
        # If a value was sealed twice, its first name counts.
        self._names = {(name[0], known[name]): name for name in sorted(known, reverse=True)}
        self._used = {(sealed.kind, sealed.number) for sealed in held}
        self.new: list[Sealed] = []
        self.counts: Counter[str] = Counter()

    def clean(self, memory: Memory, revision: int) -> Memory:
        # A placeholder typed by a person or imported must not be mistaken for one made here.
        self._used.update(name for _, text in _texts(memory) for name in placeholder_names(text))
        return _map_texts(memory, lambda field, text: self._clean_text(field, text, revision))

    def _clean_text(self, field: str, text: str, revision: int) -> str:
        spans = self._spans.get(text)
        if not spans:
            return text
        if field in FIELDS_SEALED_WHOLE:
            return self._seal(_whole(spans[0], text), field, text, revision)
        parts, end = [], 0
        for found in spans:
            parts += [text[end : found.start], self._seal(found, field, text, revision)]
            end = found.stop
        clean = "".join([*parts, text[end:]])
        if field == "title" and len(clean) > LONGEST_TITLE:
            return self._seal(_whole(spans[0], text), field, text, revision)
        return clean

    def _seal(self, found: SecretSpan, field: str, text: str, revision: int) -> str:
        value = text[found.start : found.stop]
        self.counts[found.kind] += 1
        if (found.kind, value) not in self._names:
            name = self._next_name(found.kind)
            key = self._keys.current()
            self.new.append(seal(key, self._memory, revision, field, *name, value))
            self._names[found.kind, value] = name
        return placeholder(*self._names[found.kind, value])

    def _next_name(self, kind: str) -> Name:
        number = 1 + max((used for of, used in self._used if of == kind), default=0)
        self._used.add((kind, number))
        return kind, number


def _texts(memory: Memory) -> Iterator[tuple[str, str]]:
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
        expanded_keywords=tuple(
            dict.fromkeys(change("expanded_keywords", word) for word in memory.expanded_keywords)
        ),
        source=msgspec.structs.replace(source, uri=change("source", source.uri))
        if source
        else None,
    )
