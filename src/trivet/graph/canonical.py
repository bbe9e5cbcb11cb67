"""One name for the ways a concept is written: `Li Hua` and `LiHua`, `U.S.` and `US`, `get_user` and `getUser`."""

from __future__ import annotations

import re
from functools import lru_cache

from trivet.analyse import fold

LONGEST_NAME = 80

_possessive = re.compile(r"'s?(?=\s|$)")
# Digits keep what stands between them (3.5 is not 35), and C, C++ and C# stay three.
_kept = re.compile(r"(?<=\d)[.,:\-/](?=\d)|[+#]")
_dropped = re.compile(r"[\W_]+")
_between_words = re.compile(r"\W+")
_SPELLED = {"+": "plus", "#": "sharp"}


@lru_cache(maxsize=50_000)
def form(text: str) -> str:
    """As it is written, folded: words apart, without possessive, punctuation and a leading article."""
    return _between_words.sub(" ", _plain(text)).strip()


@lru_cache(maxsize=50_000)
def canonical(text: str) -> str:
    """The name that all its forms share: squeezed to letters and digits. Empty if that leaves too much to be a name."""
    name = _dropped.sub("", _plain(text))
    return name if len(name) <= LONGEST_NAME else ""


def _plain(text: str) -> str:
    folded = _possessive.sub("", fold(text)).removeprefix("the ")
    return _kept.sub(lambda match: _SPELLED.get(match.group(), "dot"), folded)
