"""Cuts a short text into the tokens of a model whose own tokenizer is not open: to open that takes a tenth of a second.

Most of that goes into fifty thousand merges. Which of them a text needs, its own letters tell: a merge makes a token,
and that token stands in the text. So they are looked up by all parts of the text's words, and the same library cuts the
text by those alone. What it makes is what the whole tokenizer makes.

The words that the bundled embedder knows whole: some thirty thousand, most of them English, names among them.
"""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.models import WEIGHTS

# Beside the whole tokenizer: it without its merges, and its tokens in the order of their bytes
# (scripts/make_brief_tokenizer.py).
FRAME, TOKENS = "brief.json", "brief.npy"
# Of a token in UTF-8. Longer words are left to the whole tokenizer.
LONGEST = 32
# `rank`: which merge makes the token, NO_RANK if none does. `left`: so many of its bytes are the first of the two.
ROW = [("token", f"S{LONGEST}"), ("id", "<i4"), ("rank", "<i4"), ("left", "u1")]
NO_RANK = -1
# Looking up costs more than opening where a text is long.
LONGEST_TEXT = 400
# The special tokens begin so; what stands around them in a text may be cut in another way.
SPECIAL = "<"

Rows = NDArray[np.void]


def is_brief(folder: Path) -> bool:
    """Whether there is what is needed."""
    return (folder / FRAME).exists() and (folder / TOKENS).exists()


def tokenizer_of(text: str, folder: Path) -> Any:
    """A tokenizer for this text alone; None where only the whole one cuts it for sure."""
    from tokenizers import Tokenizer

    if len(text) > LONGEST_TEXT or SPECIAL in text:
        return None
    frame = (folder / FRAME).read_text(encoding="utf-8")
    words = {word for word, _ in Tokenizer.from_str(frame).pre_tokenizer.pre_tokenize_str(text)}
    if any(len(word.encode()) > LONGEST for word in words):
        return None
    found = _known(
        {part for word in words for part in _parts(word)}, np.load(folder / TOKENS, mmap_mode="r")
    )
    whole = json.loads(frame)
    whole["model"]["vocab"] |= {row["token"].decode(): int(row["id"]) for row in found}
    made = sorted(
        (row for row in found if row["rank"] != NO_RANK), key=lambda row: int(row["rank"])
    )
    whole["model"]["merges"] = [_pair(row["token"], int(row["left"])) for row in made]
    return Tokenizer.from_str(json.dumps(whole))


def _parts(word: str) -> list[str]:
    ends = range(1, len(word) + 1)
    return [word[start:end] for end in ends for start in range(end)]


def _known(parts: set[str], rows: Rows) -> Rows:
    tokens = rows["token"]
    wanted = np.array([part.encode() for part in parts], tokens.dtype)
    places = np.minimum(np.searchsorted(tokens, wanted), len(tokens) - 1)
    found: Rows = rows[places[tokens[places] == wanted]]
    return found


def _pair(token: bytes, left: int) -> str:
    return f"{token[:left].decode()} {token[left:].decode()}"


# How its tokenizer's file spells a piece before which a space stands.
_AFTER_SPACE = '"Ġ{}"'
_words_after_space = re.compile('"Ġ([^"\\\\]+)":'.encode())
# To look through the file takes a millisecond a word, to list its words twenty: who asks for more is no command that
# ends with its answer.
MAX_SCANNED_WORDS = 6
_asked = count()


def is_known_word(word: str) -> bool:
    """In small letters, with a capital or in capitals."""
    spellings = {word.lower(), word.capitalize(), word.upper()}
    if next(_asked) < MAX_SCANNED_WORDS:
        return any(
            _AFTER_SPACE.format(spelling).encode() in _vocabulary() for spelling in spellings
        )
    return any(spelling.encode() in _words() for spelling in spellings)


@cache
def _vocabulary() -> bytes:
    return (WEIGHTS / "embedder" / "tokenizer.json").read_bytes()


@cache
def _words() -> frozenset[bytes]:
    return frozenset(_words_after_space.findall(_vocabulary()))
