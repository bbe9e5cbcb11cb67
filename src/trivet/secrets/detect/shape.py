"""What a random value looks like, told apart from words, identifiers, numbers and dates."""

from __future__ import annotations

import math
import re
from collections import Counter

from trivet.secrets.detect.lazy_pattern import Late

_WORDS_JOINED = Late(r"[A-Za-z]+(?:[-_./:+'][A-Za-z]+)*[.!?]*")
_METHODS = Late(
    r"(?:argon2(?:id?)?|sha-?(?:1|224|256|384|512)|md5|pbkdf2|base64|oauth-?2|utf-?8|1password|http2|hs256|rs256|es256|"
    r"ed25519|x25519|p256|bip39|aes-?(?:128|192|256)(?:-[a-z]+)?)\W*",
    re.IGNORECASE,
)
_IDENTIFIER = Late(r"[A-Za-z][a-z]{2,}(?:[A-Z][a-z]{2,})+|[a-z]{2,}(?:_[a-z0-9]{2,}){1,8}")
_VERSION = Late(r"[v^~=<>]*\d+(?:\.\d+)+(?:[-+.][\w.]+)?")
_DATE = Late(r"\d{4}-\d{2}-\d{2}(?:[T_]?[\d:.]*Z?)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_SIZE = Late(r"[\d.,]+(?:%|[A-Za-z]{1,7})?")
_PATH = Late(
    r"(?:[\w.@-]+/)+[\w.@-]*|[\w-]+\.(?:py|js|ts|go|rs|md|txt|json|ya?ml|toml|env|pem|sh|com|org|net|io|dev)\b.*"
)
_VOWELLED = Late(r"[aeiouy]", re.IGNORECASE)


def entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())


def is_wordy(value: str) -> bool:
    """Words, identifiers, versions, dates, sizes, paths: what stands after `key:` in ordinary writing."""
    patterns = (_WORDS_JOINED, _METHODS, _IDENTIFIER, _VERSION, _DATE, _SIZE, _PATH)
    return any(pattern().fullmatch(value) for pattern in patterns)


def classes(value: str) -> int:
    """How many of small letters, capitals, digits and marks it has."""
    kinds = (str.islower, str.isupper, str.isdigit, lambda character: not character.isalnum())
    return sum(any(map(kind, value)) for kind in kinds)


def is_password(value: str) -> bool:
    """What may follow `password:`. Short ones count, since people choose such; plain words do not."""
    return 6 <= len(value) <= 200 and classes(value) >= 2 and not is_wordy(value) and _has_letter(value)


def is_word_like_password(value: str) -> bool:
    """In `PASSWORD=...` of an env file or in quotes, letters with a digit or two are meant as one."""
    plain = any(pattern().fullmatch(value) for pattern in (_METHODS, _VERSION, _DATE, _PATH))
    mixed = classes(value) >= 2 and any(map(str.isdigit, value)) and not plain
    return 6 <= len(value) <= 200 and (is_password(value) or mixed)


def is_token(value: str) -> bool:
    """A generated value: long, mixed and with no more order than chance gives."""
    if len(value) < 16 or is_wordy(value) or not _has_letter(value):
        return False
    digits = sum(map(str.isdigit, value))
    return digits >= 2 and entropy(value) >= _least_entropy(value) and not _is_hyphenated_words(value)


def _least_entropy(value: str) -> float:
    """Hexadecimal has 4 bits a character at most, others reach 4 only when longer."""
    return 2.8 if len(value) < 24 else 3.0


def _is_hyphenated_words(value: str) -> bool:
    """use-middleware-refactor-plan-2: most of its parts are words."""
    parts = [part for part in re.split(r"[-_./:]", value) if part]
    words = [part for part in parts if part.isalpha() and _VOWELLED().search(part)]
    return len(parts) >= 3 and len(words) >= len(parts) - 1 and sum(map(len, words)) >= 0.7 * sum(map(len, parts))


def _has_letter(value: str) -> bool:
    return any(map(str.isalpha, value))
