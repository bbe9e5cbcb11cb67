"""Encrypts secrets by AES-256-GCM, bound to their place: moved to another memory or field they do not decrypt.

The guard: takes secrets and private parts out of a memory before it is stored, and reveals them on request.
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


# 96 bits, as the standard wants; random, since several processes seal with one key.
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
    """With `note` the store is noted as a user of the key."""
    from cryptography.exceptions import InvalidTag

    cipher = _cipher(keys.get(sealed.key, note))
    try:
        return cipher.decrypt(sealed.nonce, sealed.sealed, _place_of(memory, sealed)).decode()
    except InvalidTag:
        raise SecretError(
            f"The {sealed.kind} in {sealed.field} of memory {memory} was damaged or moved. Restore a backup to read it."
        ) from None


def reseal(keys: KeyRing, key: Key, memory: str, old: Sealed) -> Sealed:
    """The same value under another key."""
    value = unseal(keys, memory, old)
    return seal(key, memory, old.revision, old.field, old.kind, old.number, value)


def _place_of(memory: str, sealed: Sealed) -> bytes:
    """The authenticated data. As JSON, so that no two places are written alike."""
    return msgspec.json.encode(
        ["trivet", 1, memory, sealed.revision, sealed.field, sealed.kind, sealed.number]
    )


@cache
def _ciphers() -> type[AESGCM]:
    from cryptography.hazmat.primitives.ciphers.aead import (
        AESGCM,
    )  # 55 ms, only where there is a secret

    return AESGCM


def _cipher(key: Key) -> AESGCM:
    return _ciphers()(key.secret)


# What finds secrets is loaded by whoever writes: a process that only recalls never needs it.

Mode = Literal["redact", "refuse", "off"]
# A placeholder may be longer than its secret. A title that would grow past its bound is sealed whole; so is a tag or
# keyword that holds a secret.
LONGEST_TITLE = 300
FIELDS_SEALED_WHOLE = ("tags", "expanded_keywords")


class ProtectedMemory(msgspec.Struct, frozen=True):
    """A memory that may be stored, with its earlier revisions, and the sealed secrets taken out of them."""

    memory: Memory
    history: tuple[Revision, ...] = ()
    secrets: tuple[Sealed, ...] = ()
    redacted: Mapping[str, int] = {}


class Guard:
    """What stands between a caller and the store. It asks for keys only when it has found something."""

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
        """The memory as it may be stored as `revision`. `known_secrets` gives those it has already, if needed.

        Without `recognise` a value that is sealed already is sealed once more under a new name: for a writer who must
        not learn from the name of a placeholder that a guess was right.
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
                "scope: it looks like a secret, and a scope is shown everywhere. Name a place instead."
            )

    def _without_secret_names(self, old: Revision) -> Revision:
        """An imported revision may name anything as its scope, category or act. Secrets in these are not kept."""
        memory, clean = old.memory, self.without_secrets
        named = msgspec.structs.replace(
            memory, scope=clean(memory.scope), category=clean(memory.category)
        )
        return msgspec.structs.replace(old, memory=named, action=clean(old.action))

    def spans(self, text: str) -> list[SecretSpan]:
        """Everything in a text that must not be stored as it is, from left to right."""
        return _spans(text, secrets=self.mode != "off")

    def without_secrets(self, text: str) -> str:
        """For a query or a message: placeholders instead of secrets and private parts, of which nothing is kept."""
        return redact_text(text, secrets=self.mode != "off")

    def masked(self, text: str) -> tuple[str, dict[str, int]]:
        """For proposals, which are not encrypted: the text without private parts and, in any mode, without secrets.

        Also says how many secrets of each kind were replaced.
        """
        spans = _spans(text, secrets=True)
        counts = Counter(found.kind for found in spans if found.kind != PRIVATE)
        for found in reversed(spans):
            instead = "" if found.kind == PRIVATE else placeholder(found.kind, 1)
            text = f"{text[: found.start]}{instead}{text[found.stop :]}"
        return text, dict(counts)

    def revealed(self, memory: Memory, secrets: Callable[[], Sequence[Sealed]]) -> Memory:
        """The memory with its secrets back in their places."""
        _, values = self.opened(memory.id, secrets)
        return _map_texts(memory, lambda _, text: fill_placeholders(text, values))

    def opened(
        self, memory: str, secrets: Callable[[], Sequence[Sealed]]
    ) -> tuple[Sequence[Sealed], dict[Name, str]]:
        """The secrets and what they say. Read again if one does not open: a rotation may just have sealed it anew."""
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
        """Each text with what was found in it; empty if nothing was found at all.

        The short fields are scanned together first: nearly always none of them holds anything.
        """
        contents = {memory.content: self.spans(memory.content) for memory in memories}
        fields = (pair for memory in memories for pair in _texts(memory))
        short = list(dict.fromkeys(text for field, text in fields if field != "content"))
        if not any(contents.values()) and not (short and self.spans("\n".join(short))):
            return {}
        return contents | {text: self.spans(text) for text in short}


def redact_text(text: str, secrets: bool = True) -> str:
    """The text with placeholders instead of private parts and, if wanted, secrets."""
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
    """The whole text as a secret of the same kind."""
    return msgspec.structs.replace(found, start=0, stop=len(text))


def _refuse(memory: Memory, spans: Mapping[str, Sequence[SecretSpan]]) -> None:
    for field, text in _texts(memory):
        kinds = {found.kind for found in spans.get(text, ())} - {PRIVATE}
        if kinds:
            raise InvalidInput(
                f"{field}: it holds what looks like a secret ({', '.join(sorted(kinds))}). Nothing was stored; "
                "leave it out, or set secrets = redact to have it encrypted."
            )


class _Redaction:
    """Replaces what was found in one memory and numbers it: the same value keeps its name, a new one gets the next."""

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
        # A value that was sealed twice goes by its first name.
        self._names = {(name[0], known[name]): name for name in sorted(known, reverse=True)}
        self._used = {(sealed.kind, sealed.number) for sealed in held}
        self.new: list[Sealed] = []
        self.counts: Counter[str] = Counter()

    def clean(self, memory: Memory, revision: int) -> Memory:
        # A placeholder that a person typed, or that came with an import, must not be mistaken for one of ours.
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
    """Every free text of a memory with the name of its field."""
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
