"""Whether a text holds a phrase, found without folding the text: to fold a long one takes as long as all else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trivet.analyse.text import contains_phrase, fold

# What is not ASCII, in the view of a text below.
STRANGE = b"\x80"
# Put between parts of a text; folding leaves it alone.
BETWEEN = "\0"
# A text with more of that than one byte in so many is folded at once: nearly all of its words would have to be.
MOSTLY_ASCII = 8

# Kana, Chinese and Korean, of which folding never makes ASCII: one character stands for many.
_never_ascii = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_white = frozenset(b"\t\n\v\f\r\x1c\x1d\x1e\x1f")
_view = bytes(
    0x80 if byte >= 0x80 else 0x20 if byte in _white else byte + 32 if 0x41 <= byte <= 0x5A else byte
    for byte in range(256)
)


def holds_phrase(text: str, folded: str) -> bool:
    """What `contains_phrase(fold(text), folded)` says."""
    raw = text.encode(errors="surrogatepass")
    view = raw.translate(_view)  # small letters, every white space a space, one mark for all that is not ASCII
    if text.isascii():
        return _holds(view, folded) and contains_phrase(_squeezed(view).decode(), folded)
    if view.count(STRANGE) * MOSTLY_ASCII < len(view) and not _may_hold(raw, view, folded):
        return False
    return contains_phrase(fold(text), folded)


def _may_hold(raw: bytes, view: bytes, folded: str) -> bool:
    """A phrase stands where the text is ASCII, or reaches into a word that is not."""
    if folded.isascii() and _holds(view, folded):
        return True
    apart = BETWEEN.join(("", *_not_ascii(raw, view), ""))
    apart = fold(_never_ascii.sub("\u4e00", apart) if folded.isascii() else apart)
    return _may_reach_into(apart.replace(f" {BETWEEN}", BETWEEN).replace(f"{BETWEEN} ", BETWEEN), folded)


def _holds(view: bytes, folded: str) -> bool:
    longest = max(folded.split(" "), key=len).encode()  # most texts lack it, and need not be squeezed
    return longest in view and folded.encode() in _squeezed(view)


def _may_reach_into(parts: str, folded: str) -> bool:
    """Whether a phrase could be inside one of these folded parts of a text, begin or end in it, or go through it."""
    if folded in parts or BETWEEN + BETWEEN in parts:  # a part of which nothing is left joins its neighbours
        return True
    words = folded.split(" ")
    if words[0] + BETWEEN in parts or BETWEEN + words[-1] in parts:
        return True
    ends = (BETWEEN, " ")  # a part that folds into several words counts by its first and its last
    whole = (f"{one}{word}{other}" for word in words for one in ends for other in ends if one + other != "  ")
    return any(one in parts for one in whole)


def _not_ascii(raw: bytes, view: bytes) -> Iterator[str]:
    """The parts between spaces that are not ASCII throughout."""
    at = view.find(STRANGE)
    while at >= 0:
        stop = view.find(b" ", at)
        stop = len(view) if stop < 0 else stop
        yield raw[view.rfind(b" ", 0, at) + 1 : stop].decode(errors="surrogatepass")
        at = view.find(STRANGE, stop)


def _squeezed(view: bytes) -> bytes:
    while b"  " in view:
        view = view.replace(b"  ", b" ")
    return view
