"""All secrets in a text, without overlaps, including ones wrapped over lines.

It runs on the caller's time: a note takes about 0.1 ms.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import msgspec

from trivet.secrets.known_formats import COMMANDS, ISSUED, seed_phrases
from trivet.secrets.masking import PLACEHOLDER, placeholder
from trivet.secrets.named_values import assigned_secrets, prose_secrets
from trivet.secrets.value_shape import LazyPattern

_TOKEN = r"[A-Za-z0-9_+/=-]"
# With the next line's indent and quote, and the continuation mark before it.
_LINE_END = LazyPattern(rf"\r?\n[ \t]{{0,40}}(?P<opening>[\"']?)(?=(?P<rest>{_TOKEN}{{6,400}}))")
_MARK = LazyPattern(rf"(?<={_TOKEN})[\"']?[ \t]{{0,8}}[\\+]?[ \t]{{0,8}}$")
LONGEST_MARK = 20

Spans = Iterator[tuple[str, int, int]]


class JoinedText(msgspec.Struct, frozen=True):
    text: str
    starts: tuple[int, ...]  # of each part, in `text`
    were: tuple[int, ...]  # of each part, in the original text

    def spans(self, find: Callable[[str], Spans]) -> Spans:
        for kind, start, stop in find(self.text):
            first, last = (
                bisect_right(self.starts, start) - 1,
                bisect_right(self.starts, stop - 1) - 1,
            )
            if first != last:
                yield (
                    kind,
                    start + self.were[first] - self.starts[first],
                    stop + self.were[last] - self.starts[last],
                )


def join_wrapped_lines(text: str, only_marked: bool) -> JoinedText | None:
    """Return the text without line ends inside tokens, or None if there are none.

    With `only_marked`, quotes or a continuation mark must connect the lines.
    """
    breaks = [
        span
        for found in _LINE_END().finditer(text)
        if (span := _break(text, found, only_marked)) is not None
    ]
    if not breaks:
        return None
    were = (0, *(stop for _, stop in breaks))
    parts = [
        text[start:stop]
        for start, stop in zip(were, (*(start for start, _ in breaks), len(text)), strict=True)
    ]
    return JoinedText("".join(parts), tuple(accumulate(map(len, parts[:-1]), initial=0)), were)


def _break(text: str, found: re.Match[str], only_marked: bool) -> tuple[int, int] | None:
    if not only_marked and not _continues_token(found["rest"]):
        return None
    start = max(0, found.start() - LONGEST_MARK)
    mark = _MARK().search(text[start : found.start()])
    if mark is None or (only_marked and not _is_marked(mark[0].strip(), found["opening"])):
        return None
    return start + mark.start(), found.end()


def _is_marked(mark: str, opening: str) -> bool:
    return mark[-1:] in ("\\", "+") or (mark[:1] == opening != "")


def _continues_token(rest: str) -> bool:
    letters = any(map(str.isalpha, rest))
    mixed = rest != rest.lower() and rest[1:] != rest[1:].lower() and rest != rest.upper()
    return letters and (mixed or any(map(str.isdigit, rest)))


# `pw=a1b2c3`, the shortest text that any rule matches.
SHORTEST = 8
# Digests of clean texts, about 1 MB. A text passes several checks from inbox to provider; only the
# first one scans it.
MAX_CLEAN_DIGESTS = 10_000


class SecretSpan(msgspec.Struct, frozen=True):
    kind: str
    start: int
    stop: int


_clean: set[bytes] = set()


def find(text: str) -> tuple[SecretSpan, ...]:
    """Return the secrets in order; overlapping ones merge into the kind found first."""
    if len(text) < SHORTEST:
        return ()
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if digest in _clean:
        return ()
    found = _scan(text)
    if not found:
        if len(_clean) >= MAX_CLEAN_DIGESTS:
            _clean.clear()
        _clean.add(digest)
    return found


def without_secrets(text: str) -> str:
    """Clean an error text: it quotes the invalid value, which may be a secret."""
    for found in reversed(find(text)):
        text = f"{text[: found.start]}{placeholder(found.kind, 1)}{text[found.stop :]}"
    return text


def _scan(text: str) -> tuple[SecretSpan, ...]:
    placeholders = (
        [SecretSpan("", *match.span()) for match in PLACEHOLDER.finditer(text)]
        if "[" in text
        else []
    )
    return tuple(_joined(without_overlaps(placeholders, list(_candidates(text)))))


def without_overlaps(taken: Sequence[SecretSpan], found: Sequence[SecretSpan]) -> list[SecretSpan]:
    """Return the spans that overlap none in `taken`, which is sorted and disjoint."""
    starts = [one.start for one in taken]

    def is_free(span: SecretSpan) -> bool:
        before = bisect_left(starts, span.stop)  # the last that starts before the span's end
        return not before or taken[before - 1].stop <= span.start

    return [span for span in found if is_free(span)]


def _joined(found: Sequence[SecretSpan]) -> list[SecretSpan]:
    """Merge overlaps: a password may contain a token, and nothing of it may remain."""
    joined: list[tuple[int, SecretSpan]] = []
    for order, span in sorted(enumerate(found), key=lambda one: (one[1].start, one[0])):
        if joined and span.start < joined[-1][1].stop:
            first, other = min(joined[-1], (order, span), key=lambda one: one[0])
            joined[-1] = (
                first,
                SecretSpan(other.kind, joined[-1][1].start, max(joined[-1][1].stop, span.stop)),
            )
        else:
            joined.append((order, span))
    return [span for _, span in joined]


_RULES = (*ISSUED, *COMMANDS)
# A hundred lookups in a text take a few microseconds.
_ANCHORS = tuple(
    (anchor, number) for number, rule in enumerate(_RULES) for anchor in rule.anchors or ("",)
)


def _candidates(text: str) -> Iterator[SecretSpan]:
    for reader in (_by_form, assigned_secrets, prose_secrets, seed_phrases):
        yield from (SecretSpan(*found) for found in reader(text))
    if "\n" in text:
        for reader, only_marked in ((_by_form, False), (assigned_secrets, True)):
            whole = join_wrapped_lines(text, only_marked)
            if whole is not None:
                yield from (SecretSpan(*found) for found in whole.spans(reader))


def _by_form(text: str) -> Iterator[tuple[str, int, int]]:
    lower = text.lower()
    for number in sorted({number for anchor, number in _ANCHORS if anchor in lower}):
        rule = _RULES[number]
        yield from ((_more_exact(rule.kind, lower), *span) for span in rule.spans(text))


def _more_exact(kind: str, lower: str) -> str:
    return "gcp-service-account" if kind == "private-key" and "service_account" in lower else kind
