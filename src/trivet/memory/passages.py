"""Cuts a long text into overlapping passages of whole sentences that fit an embedder's window."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from trivet.store.records import Passage

CountTokens = Callable[[Sequence[str]], list[int]]

# Share of a passage that the next one repeats, in whole sentences, so that no thought is cut in two.
OVERLAP_SHARE = 0.15

_sentence_end = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n\s*")


def cut(text: str, count_tokens: CountTokens, window: int) -> tuple[Passage, ...]:
    """The passages of a text, in order, as character positions. A text that fits is one passage."""
    if len(text) <= window or count_tokens([text])[0] <= window:
        return (Passage(0, 0, len(text)),)
    spans = _spans_that_fit(text, count_tokens, window)
    sizes = count_tokens([text[start:stop] for start, stop in spans])
    return tuple(
        Passage(ordinal, spans[first][0], spans[last - 1][1])
        for ordinal, (first, last) in enumerate(_windows(sizes, window))
    )


def _windows(sizes: Sequence[int], window: int) -> list[tuple[int, int]]:
    """Ranges of sentences: each as many as fit, beginning some sentences before the last one ended."""
    windows: list[tuple[int, int]] = []
    first = 0
    while True:
        last, total = first, 0
        while last < len(sizes) and (last == first or total + sizes[last] <= window):
            total += sizes[last]
            last += 1
        windows.append((first, last))
        if last == len(sizes):
            return windows
        first = _step_back(sizes, first, last, int(window * OVERLAP_SHARE))


def _step_back(sizes: Sequence[int], first: int, last: int, most: int) -> int:
    start, repeated = last, 0
    while start - 1 > first and repeated + sizes[start - 1] <= most:
        start -= 1
        repeated += sizes[start]
    return start


def _spans_that_fit(text: str, count_tokens: CountTokens, window: int) -> list[tuple[int, int]]:
    spans = _sentences(text)
    sizes = count_tokens([text[start:stop] for start, stop in spans])
    return [
        piece
        for span, size in zip(spans, sizes, strict=True)
        for piece in (_halves(text, span, count_tokens, window) if size > window else [span])
    ]


def _sentences(text: str) -> list[tuple[int, int]]:
    cuts = [match.end() for match in _sentence_end.finditer(text)]
    edges = sorted({0, *cuts, len(text)})
    return [(start, stop) for start, stop in pairwise(edges) if text[start:stop].strip()]


def _halves(text: str, span: tuple[int, int], count_tokens: CountTokens, window: int) -> list[tuple[int, int]]:
    """A sentence longer than the window is halved, at a space where there is one, until its pieces fit."""
    start, stop = span
    if stop - start < 2 or count_tokens([text[start:stop]])[0] <= window:
        return [span]
    middle = (start + stop) // 2
    space = text.rfind(" ", start + 1, middle)
    at = space + 1 if space > start + (stop - start) // 4 else middle
    return [piece for part in ((start, at), (at, stop)) for piece in _halves(text, part, count_tokens, window)]
