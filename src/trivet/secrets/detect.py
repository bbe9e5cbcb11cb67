"""Secrets broken over lines, by a mail program, a PDF or a string in code: the text is read again without the breaks.

Only breaks between characters of which tokens are made are left out, and only where the next line goes on like one.

All secrets in a text, without overlaps. It runs on the caller's time: a note takes about 0.1 ms.
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

# What a token is made of.
_TOKEN = r"[A-Za-z0-9_+/=-]"
# A line end with the indent and the quote of the next line, and the mark of continuation before it.
_LINE_END = LazyPattern(rf"\r?\n[ \t]{{0,40}}(?P<opening>[\"']?)(?=(?P<rest>{_TOKEN}{{6,400}}))")
_MARK = LazyPattern(rf"(?<={_TOKEN})[\"']?[ \t]{{0,8}}[\\+]?[ \t]{{0,8}}$")
LONGEST_MARK = 20

Spans = Iterator[tuple[str, int, int]]


class JoinedText(msgspec.Struct, frozen=True):
    """A text without some of its line ends, and where its parts stood."""

    text: str
    starts: tuple[int, ...]  # of each part, here
    were: tuple[int, ...]  # of each part, in the text as it was

    def spans(self, find: Callable[[str], Spans]) -> Spans:
        """What `find` finds over a break, by its place in the text as it was."""
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
    """None if nothing is broken. `only_marked`: only where quotes or a mark of continuation say that it goes on."""
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
    """What is left out so that the token is whole."""
    if not only_marked and not _goes_on(found["rest"]):
        return None
    start = max(0, found.start() - LONGEST_MARK)
    mark = _MARK().search(text[start : found.start()])
    if mark is None or (only_marked and not _is_marked(mark[0].strip(), found["opening"])):
        return None
    return start + mark.start(), found.end()


def _is_marked(mark: str, opening: str) -> bool:
    return mark[-1:] in ("\\", "+") or (mark[:1] == opening != "")


def _goes_on(rest: str) -> bool:
    """Whether it looks generated: letters and digits, or small letters and capitals in no order of a word."""
    letters = any(map(str.isalpha, rest))
    mixed = rest != rest.lower() and rest[1:] != rest[1:].lower() and rest != rest.upper()
    return letters and (mixed or any(map(str.isdigit, rest)))


# `pw=a1b2c3` is the least that any rule takes.
SHORTEST = 8
# Digests of texts without secrets that are remembered, about 1 MB. A text passes several doors on its way (a file's
# digest, the inbox, the write path, a provider's request); only the first of them has to scan it.
MAX_CLEAN_DIGESTS = 10_000


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
        if len(_clean) >= MAX_CLEAN_DIGESTS:
            _clean.clear()
        _clean.add(digest)
    return found


def without_secrets(text: str) -> str:
    """For error texts: they quote what was wrong, and that may be a secret in the wrong field."""
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
            joined[-1] = (
                first,
                SecretSpan(other.kind, joined[-1][1].start, max(joined[-1][1].stop, span.stop)),
            )
        else:
            joined.append((order, span))
    return [span for _, span in joined]


_RULES = (*ISSUED, *COMMANDS)
# One flat list of all anchors: a hundred look-ups in a text take some microseconds.
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
