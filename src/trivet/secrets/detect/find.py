"""All that is found in a text, without overlaps. It runs on the caller's time: a note takes about 0.1 ms."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from trivet.secrets.detect import assigned, library
from trivet.secrets.detect.issued import ISSUED


class Found(msgspec.Struct, frozen=True):
    """A secret of some kind, by character positions."""

    kind: str
    start: int
    stop: int


# What a secret was replaced by is none itself.
PLACED = re.compile(r"\[(?:secret:[a-z0-9-]+:\d+|private(?::\d+)?)\]")


def find(text: str) -> tuple[Found, ...]:
    """The secrets in a text, from left to right. What overlaps becomes one, of the kind that its form told first."""
    if len(text) < SHORTEST:
        return ()
    placed = [match.span() for match in PLACED.finditer(text)] if "[" in text else []
    taken: list[Found] = []
    for found in _candidates(text):
        if any(found.start < stop and start < found.stop for start, stop in placed):
            continue
        taken = _joined(taken, found)
    return tuple(sorted(taken, key=lambda found: found.start))


def _joined(taken: list[Found], found: Found) -> list[Found]:
    """A password may hold a token and more: nothing of it may be left beside the placeholder."""
    touching = [other for other in taken if found.start < other.stop and other.start < found.stop]
    if not touching:
        return [*taken, found]
    start = min(found.start, *(other.start for other in touching))
    stop = max(found.stop, *(other.stop for other in touching))
    apart = [other for other in taken if other not in touching]
    return [*apart, Found(touching[0].kind, start, stop)]


# `pw=a1b2c3` is the least that any rule takes.
SHORTEST = 8


# One flat list, since a text is asked for each of them: a hundred look-ups take some microseconds.
_ISSUED_ANCHORS = tuple((anchor, number) for number, rule in enumerate(ISSUED) for anchor in rule.anchors or ("",))
_LIBRARY_ANCHORS = tuple((anchor, plugin) for plugin in library.PLUGINS for anchor in plugin.anchors)


def _candidates(text: str) -> Iterator[Found]:
    lower = text.lower()
    for number in sorted({number for anchor, number in _ISSUED_ANCHORS if anchor in lower}):
        rule = ISSUED[number]
        yield from (Found(_nearer(rule.kind, lower), *span) for span in rule.spans(text))
    for plugin in dict.fromkeys(plugin for anchor, plugin in _LIBRARY_ANCHORS if anchor in lower):
        yield from (Found(plugin.kind, *span) for span in library.spans(plugin, text))
    yield from (Found(*found) for found in assigned.assigned(text))


def _nearer(kind: str, lower: str) -> str:
    return "gcp-service-account" if kind == "private-key" and "service_account" in lower else kind
