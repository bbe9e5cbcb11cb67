"""All secrets in a text, without overlaps. It runs on the caller's time: a note takes about 0.1 ms."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec

from trivet.secrets.detect.assigned import assigned
from trivet.secrets.detect.commands import COMMANDS
from trivet.secrets.detect.issued import ISSUED
from trivet.secrets.detect.seed_phrase import seed_phrases
from trivet.secrets.detect.told import told
from trivet.secrets.detect.wrapped import unwrapped
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
    placeholders = [SecretSpan("", *match.span()) for match in PLACEHOLDER.finditer(text)] if "[" in text else []
    return tuple(_joined(apart_from(placeholders, list(_candidates(text)))))


def apart_from(taken: Sequence[SecretSpan], found: Sequence[SecretSpan]) -> list[SecretSpan]:
    """Those found that overlap nothing taken. `taken` is in order and without overlaps."""
    starts = [one.start for one in taken]

    def is_free(span: SecretSpan) -> bool:
        before = bisect_left(starts, span.stop)  # the last that begins before its end
        return not before or taken[before - 1].stop <= span.start

    return [span for span in found if is_free(span)]


def _joined(found: Sequence[SecretSpan]) -> list[SecretSpan]:
    """From left to right. A password may hold a token and more: nothing of it may be left beside the placeholder."""
    joined: list[tuple[int, SecretSpan]] = []
    for order, span in sorted(enumerate(found), key=lambda one: (one[1].start, one[0])):
        if joined and span.start < joined[-1][1].stop:
            first, other = min(joined[-1], (order, span), key=lambda one: one[0])
            joined[-1] = first, SecretSpan(other.kind, joined[-1][1].start, max(joined[-1][1].stop, span.stop))
        else:
            joined.append((order, span))
    return [span for _, span in joined]


_RULES = (*ISSUED, *COMMANDS)
# One flat list of all anchors: a hundred look-ups in a text take some microseconds.
_ANCHORS = tuple((anchor, number) for number, rule in enumerate(_RULES) for anchor in rule.anchors or ("",))


def _candidates(text: str) -> Iterator[SecretSpan]:
    for reader in (_by_form, assigned, told, seed_phrases):
        yield from (SecretSpan(*found) for found in reader(text))
    if "\n" in text:
        for reader, only_marked in ((_by_form, False), (assigned, True)):
            whole = unwrapped(text, only_marked)
            if whole is not None:
                yield from (SecretSpan(*found) for found in whole.spans(reader))


def _by_form(text: str) -> Iterator[tuple[str, int, int]]:
    lower = text.lower()
    for number in sorted({number for anchor, number in _ANCHORS if anchor in lower}):
        rule = _RULES[number]
        yield from ((_more_exact(rule.kind, lower), *span) for span in rule.spans(text))


def _more_exact(kind: str, lower: str) -> str:
    return "gcp-service-account" if kind == "private-key" and "service_account" in lower else kind
