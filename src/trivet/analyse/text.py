"""Text as it is compared: folded, and cut into words and identifiers."""

from __future__ import annotations

import re
import unicodedata

# Thai to Lao, Burmese, Khmer, then Japanese, Chinese and Korean.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
unspaced_run = re.compile(f"[{UNSPACED}]+")
# Starts and ends with a letter or digit; joiners may stand inside (`don't`, `a/b.py`, `E_CONN`); C++ keeps its tail.
token_pattern = re.compile(r"[^\W_](?:[\w.\-/:@#+'\\]*[^\W_])?[+#]*")
_hyphen_or_apostrophe = re.compile(r"[-']")
_combining_marks = re.compile("[\u0300-\u036f]")


def fold(text: str) -> str:
    """Compatibility forms unified, case and Latin diacritics removed, white space squeezed."""
    if text.isascii():
        return " ".join(text.lower().split())
    decomposed = _straight(unicodedata.normalize("NFKD", text).casefold())
    return " ".join(unicodedata.normalize("NFC", _combining_marks.sub("", decomposed)).split())


def tokens_of(text: str) -> list[str]:
    """The words and identifiers of a text as they are written, punctuation left out."""
    if not text.isascii():
        text = _straight(unicodedata.normalize("NFKC", text))
    return token_pattern.findall(text)


def is_identifier(token: str) -> bool:
    """Whether a token is no ordinary word: inner capitals, digits among letters, joiners other than - and '."""
    if token.isalpha():
        return not (token.islower() or token.isupper() or token.istitle()) and token[1:].lower() != token[1:]
    if token.isdigit():
        return False
    letters = [part for part in _hyphen_or_apostrophe.split(token) if part]
    return not all(part.isalpha() for part in letters)


def contains_phrase(folded_text: str, folded_phrase: str) -> bool:
    """Whether the phrase stands in the text as whole words."""
    start = folded_text.find(folded_phrase)
    while start >= 0:
        end = start + len(folded_phrase)
        if _boundary(folded_text, start) and _boundary(folded_text, end):
            return True
        start = folded_text.find(folded_phrase, start + 1)
    return False


def _boundary(text: str, position: int) -> bool:
    if position == 0 or position == len(text):
        return True
    before, after = text[position - 1], text[position]
    if unspaced_run.match(before) or unspaced_run.match(after):
        return True
    return not (before.isalnum() and after.isalnum())


def _straight(text: str) -> str:
    """Typographic apostrophes as plain ones; str.translate would take ten times as long."""
    return text.replace("\u2019", "'").replace("\u02bc", "'")
