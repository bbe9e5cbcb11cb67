"""One name for the ways a concept is written: `Li Hua` and `LiHua`, `U.S.` and `US`, `get_user` and `getUser`."""

from __future__ import annotations

import re

from trivet.analyse import fold
from trivet.bounded_cache import MIB, cached

LONGEST_NAME = 80
SHORTEST_SINGULAR = 3
# For the names of some 10,000 concepts, each by the ways it is written.
NAMES_BYTES = 4 * MIB

_possessive = re.compile(r"'s?(?=\s|$)")
# Marks between digits are kept (3.5 is not 35), and C, C++ and C# stay three names.
_kept = re.compile(r"(?<=\d)[.,:\-/](?=\d)|[+#]")
_dropped = re.compile(r"[\W_]+")
_between_words = re.compile(r"\W+")
_NOT_PLURAL = ("ss", "us", "is", "os", "as", "ws")
_PLURALS = (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("shes", "sh"), ("ches", "ch"), ("s", ""))
_IRREGULAR = {
    "movies": "movie", "cookies": "cookie", "caches": "cache", "aliases": "alias", "statuses": "status", "buses": "bus",
    "apis": "api",
}  # fmt: skip
# Words that end in s and are no plurals, also where they are written in lower case.
_ENDS_IN_S = frozenset("postgres kubernetes jenkins rails nats https sales express series species".split())
_SPELLED = {"+": "plus", "#": "sharp"}


def form(text: str) -> str:
    """The writing, folded: separate words, without possessive, punctuation and a leading article."""
    if text.isascii() and text.replace(" ", "").isalnum():  # as most: it has nothing that the patterns look for
        return " ".join(text.lower().split()).removeprefix("the ")
    return _form(text)


@cached(NAMES_BYTES)
def _form(text: str) -> str:
    return _between_words.sub(" ", _plain(text)).strip()


def canonical(text: str) -> str:
    """The name that all its forms share: letters and digits only. Empty if that is too long for a name."""
    if text.isascii() and text.isalnum():
        return text.lower() if len(text) <= LONGEST_NAME else ""
    return _canonical(text)


@cached(NAMES_BYTES)
def _canonical(text: str) -> str:
    name = _dropped.sub("", _plain(text))
    return name if len(name) <= LONGEST_NAME else ""


def singular(text: str) -> str:
    """A plural as its singular: `APIs` as `API`, so that `google-sheets` and `Google Sheet` are one.

    A name of one word keeps its end: Adams is not Adam.
    """
    start, word = _last_word(text)
    if (text == word and word.istitle()) or word.endswith(_NOT_PLURAL) or word.lower() in _ENDS_IN_S:
        return text
    if word.lower() in _IRREGULAR:
        return start + _IRREGULAR[word.lower()]
    for ending, instead in _PLURALS:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= SHORTEST_SINGULAR:
            return start + word.removesuffix(ending) + instead
    return text


def _last_word(text: str) -> tuple[str, str]:
    """Read from its end: a pattern that ends with `$` would try every place of a long word."""
    start = len(text)
    while start and text[start - 1].isalpha():
        start -= 1
    return text[:start], text[start:]


def _plain(text: str) -> str:
    folded = _possessive.sub("", fold(text)).removeprefix("the ")
    return _kept.sub(lambda match: _SPELLED.get(match.group(), "dot"), folded)
