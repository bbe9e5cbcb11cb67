"""All secrets in a text, without overlaps. It runs on the caller's time: a note takes about 0.1 ms."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from trivet.secrets.detect import assigned, library
from trivet.secrets.detect.issued import ISSUED
from trivet.secrets.placeholder import PLACEHOLDER, placeholder

# `pw=a1b2c3` is the least that any rule takes.
SHORTEST = 8
# Digests of texts without secrets that are remembered, about 1 MB. A text passes several doors on its way (a file's
# digest, the inbox, the write path, a provider's request); only the first of them has to scan it.
MOST_CLEAN = 10_000


class SecretSpan(msgspec.Struct, frozen=True):
    """A secret of some kind, by character positions."""

    kind: str
    start: int
    stop: int


_clean: set[bytes] = set()


def find(text: str) -> tuple[SecretSpan, ...]:
    """The secrets in a text, from left to right. Overlapping ones become one, of the kind that was found first."""
    if len(text) < SHORTEST:
        return ()
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if digest in _clean:
        return ()
    found = _scan(text)
    if not found:
        if len(_clean) >= MOST_CLEAN:
            _clean.clear()
        _clean.add(digest)
    return found


def without_secrets(text: str) -> str:
    """For error texts: they quote what was wrong, and that may be a secret in the wrong field."""
    for found in reversed(find(text)):
        text = f"{text[: found.start]}{placeholder(found.kind, 1)}{text[found.stop :]}"
    return text


def _scan(text: str) -> tuple[SecretSpan, ...]:
    placeholders = [match.span() for match in PLACEHOLDER.finditer(text)] if "[" in text else []
    secrets: list[SecretSpan] = []
    for found in _candidates(text):
        if not any(found.start < stop and start < found.stop for start, stop in placeholders):
            secrets = _joined(secrets, found)
    return tuple(sorted(secrets, key=lambda found: found.start))


def _joined(secrets: list[SecretSpan], found: SecretSpan) -> list[SecretSpan]:
    """A password may hold a token and more: nothing of it may be left beside the placeholder."""
    touching = [other for other in secrets if found.start < other.stop and other.start < found.stop]
    if not touching:
        return [*secrets, found]
    start = min(found.start, *(other.start for other in touching))
    stop = max(found.stop, *(other.stop for other in touching))
    apart = [other for other in secrets if other not in touching]
    return [*apart, SecretSpan(touching[0].kind, start, stop)]


# One flat list of all anchors: a hundred look-ups in a text take some microseconds.
_ISSUED_ANCHORS = tuple((anchor, number) for number, rule in enumerate(ISSUED) for anchor in rule.anchors or ("",))
_LIBRARY_ANCHORS = tuple((anchor, plugin) for plugin in library.PLUGINS for anchor in plugin.anchors)


def _candidates(text: str) -> Iterator[SecretSpan]:
    lower = text.lower()
    for number in sorted({number for anchor, number in _ISSUED_ANCHORS if anchor in lower}):
        rule = ISSUED[number]
        yield from (SecretSpan(_more_exact(rule.kind, lower), *span) for span in rule.spans(text))
    for plugin in dict.fromkeys(plugin for anchor, plugin in _LIBRARY_ANCHORS if anchor in lower):
        yield from (SecretSpan(plugin.kind, *span) for span in library.spans(plugin, text))
    yield from (SecretSpan(*found) for found in assigned.assigned(text))


def _more_exact(kind: str, lower: str) -> str:
    return "gcp-service-account" if kind == "private-key" and "service_account" in lower else kind
