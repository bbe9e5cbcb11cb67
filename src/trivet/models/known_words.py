"""The words that the bundled embedder knows whole: some thirty thousand, most of them English, names among them."""

from __future__ import annotations

from functools import cache

import msgspec

from trivet.models import WEIGHTS

# How its tokenizer marks a piece before which a space stands.
_AFTER_SPACE = "Ġ"


class _Vocabulary(msgspec.Struct):
    vocab: dict[str, int]


class _Tokenizer(msgspec.Struct):
    model: _Vocabulary


@cache
def known_words() -> frozenset[str]:
    """In small letters. Read when it is first asked for: that takes as long as a dozen recalls."""
    read = msgspec.json.decode((WEIGHTS / "embedder" / "tokenizer.json").read_bytes(), type=_Tokenizer)
    words = (piece.removeprefix(_AFTER_SPACE) for piece in read.model.vocab if piece.startswith(_AFTER_SPACE))
    return frozenset(word.lower() for word in words if word.isalpha())
