"""Fast tokenization of one short text, and the words that the bundled embedder knows.

Opening the whole tokenizer takes 0.1 s, mostly for merges; only those that the text can need are
loaded.
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

# Written by scripts/make_brief_tokenizer.py.
FRAME, TOKENS = "brief.json", "brief.npy"
# Bytes of a token. The whole tokenizer handles longer words.
LONGEST = 32
# `rank`: the merge that makes the token, or NO_RANK; `left`: bytes of that merge's first part.
ROW = [("token", f"S{LONGEST}"), ("id", "<i4"), ("rank", "<i4"), ("left", "u1")]
NO_RANK = -1
# Characters. For longer texts, lookups take longer than opening the tokenizer.
LONGEST_TEXT = 400
# Special tokens start with it; text around them may split differently.
SPECIAL = "<"

Rows = NDArray[np.void]


def is_brief(folder: Path) -> bool:
    return (folder / FRAME).exists() and (folder / TOKENS).exists()


def tokenizer_of(text: str, folder: Path) -> Any:
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


# A token that follows a space, in the tokenizer file.
_AFTER_SPACE = '"Ġ{}"'
_words_after_space = re.compile('"Ġ([^"\\\\]+)":'.encode())
# Searching the file takes 1 ms per word, listing all words 20 ms.
MAX_SCANNED_WORDS = 6
_asked = count()


def is_known_word(word: str) -> bool:
    """Return whether the embedder knows the word, also capitalized or in capitals."""
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
