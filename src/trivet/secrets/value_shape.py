"""The shape of a value: random, an ordinary word, or a placeholder that opens nothing."""

from __future__ import annotations

import math
import re
from collections import Counter


class LazyPattern:
    """A pattern compiled on first use: all take 25 ms, and most texts need three."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._of = pattern, flags
        self._compiled: re.Pattern[str] | None = None

    def __call__(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(*self._of)
        return self._compiled


SHORTEST_PASSWORD, LONGEST_PASSWORD = 6, 200
SHORTEST_TOKEN = 16
_NAMES_A_THING = (
    r"(?i:argon2(?:id?)?|sha-?(?:1|224|256|384|512)|md5|pbkdf2|base64|oauth-?2|utf-?8|1password|http2|hs256|rs256|es256|"
    r"ed25519|x25519|p256|bip39|aes-?(?:128|192|256)(?:-[a-z]+)?)\W*"
    r"|[v^~=<>]*+\d++\.\d++(?:\.\w*+)*+(?:[-+][\w.]++)?"
    r"|\d{4}-\d{2}-\d{2}(?:[T_]?[\d:.]*Z?)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    r"|(?:[\w.@-]+/)+[\w.@-]*|[\w-]+\.(?:py|js|ts|go|rs|md|txt|json|ya?ml|toml|env|pem|sh|com|org|net|io|dev)\b.*"
)
_THING = LazyPattern(_NAMES_A_THING)
_WORDY = LazyPattern(
    r"[A-Za-z]+(?:[-_./:+'][A-Za-z]+)*[.!?]*|[A-Za-z][a-z]{2,}(?:[A-Z][a-z]{2,})+|[a-z]{2,}(?:_[a-z0-9]{2,}){1,8}"
    rf"|[\d.,]+(?:%|[A-Za-z]{{1,7}})?|{_NAMES_A_THING}"
)
_HYPHENS = LazyPattern(r"[-_./:]")
_VOWELLED = LazyPattern(r"[aeiouy]", re.IGNORECASE)


def entropy(value: str) -> float:
    return -sum(
        count / len(value) * math.log2(count / len(value)) for count in Counter(value).values()
    )


def looks_like_words(value: str) -> bool:
    return _WORDY().fullmatch(value) is not None


def character_classes(value: str) -> int:
    kinds = (str.islower, str.isupper, str.isdigit, lambda character: not character.isalnum())
    return sum(any(map(kind, value)) for kind in kinds)


def is_password(value: str) -> bool:
    """Return whether a value after `password:` is one; short values may be."""
    return (
        SHORTEST_PASSWORD <= len(value) <= LONGEST_PASSWORD
        and character_classes(value) >= 2
        and not looks_like_words(value)
        and _has_letter(value)
    )


def is_weak_password(value: str) -> bool:
    """Accept also letters with a digit, in quotes or after `PASSWORD=`."""
    mixed = (
        character_classes(value) >= 2
        and any(map(str.isdigit, value))
        and not _THING().fullmatch(value)
    )
    return SHORTEST_PASSWORD <= len(value) <= LONGEST_PASSWORD and (is_password(value) or mixed)


def is_token(value: str) -> bool:
    if len(value) < SHORTEST_TOKEN or looks_like_words(value) or not _has_letter(value):
        return False
    digits = sum(map(str.isdigit, value))
    return (
        digits >= 2 and entropy(value) >= _least_entropy(value) and not _is_hyphenated_words(value)
    )


def _least_entropy(value: str) -> float:
    """Require less of hexadecimal, which has at most 4 bits per character, and of short values."""
    return 2.8 if len(value) < 24 else 3.0


def _is_hyphenated_words(value: str) -> bool:
    """Match use-middleware-refactor-plan-2."""
    parts = [part for part in _HYPHENS().split(value) if part]
    words = [part for part in parts if part.isalpha() and _VOWELLED().search(part)]
    return (
        len(parts) >= 3
        and len(words) >= len(parts) - 1
        and sum(map(len, words)) >= 0.7 * sum(map(len, parts))
    )


def _has_letter(value: str) -> bool:
    return any(map(str.isalpha, value))


# Stand-ins for secrets. Only whole words or obvious parts: a random key may contain any three
# letters.
_WORDS = LazyPattern(
    r"example|your[-_ ]?|placeholder|change[-_]?me|replace[-_]?(?:me|with)|redacted|dummy|insert[-_]|sample|"  # noqa: E501
    r"todo|fixme|not[-_]?a[-_]?real|x{4}|\*\*\*|\.\.\.|…|•••|fake|my[-_](?:secret|token|key|pass)|"
    r"goes[-_]here|test[-_]?(?:token|secret|key|password)(?![a-z0-9]{6})|some[-_]|foobar",
    re.IGNORECASE,
)
# Typed runs. A generated key may contain one, so it must be most of the value.
_TYPED_RUN = LazyPattern(
    r"12345678\d*|abcdefgh[a-z]*|(?:deadbeef)+|0{8,}|1{8,}|a{8,}", re.IGNORECASE
)
# <token>, {{ token }}, ${TOKEN}, $TOKEN, %TOKEN%, [token], and calls or lookups that fetch it.
_REFERENCE = LazyPattern(
    r"^(?:<[^>]*>?|\{\{?.*|\$[\w{(].*|%\w+%|\[.*|@.*|&\w+|[\w.]+\(.*|[\w.]+\[.*|(?:os\.|process\.env|env\.|self\.|config\.|"
    r"settings\.|secrets?\.|vault\.|var\.|data\.|import\.meta|request\.|req\.|ctx\.|this\.|args\.|params\.).*|"
    r"(?:op|vault|arn|ssm|secretsmanager|keyring|file|https?|gcp|aws|sops|ref|projects)[:/].*|(?:\.{0,2}|~)/.*|!\w.*|"
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)$"
)
# Published by their makers as examples; they open nothing.
_DOCUMENTED = frozenset(
    {
        "4eC39HqLyjWDarjtT1zdp7dc",  # Stripe's
        "4242424242424242", "4000056655665556", "5555555555554444", "2223003122003222", "5200828282828210",  # noqa: E501
        "5105105105105100", "378282246310005", "371449635398431", "6011111111111117", "6011000990139424",  # noqa: E501
        "3056930009020004", "36227206271667", "30569309025904", "38520000023237", "3566002020360505",  # noqa: E501
        "6200000000000005", "4111111111111111", "4012888888881881", "4222222222222", "4000000000000002",  # noqa: E501
        "DE89370400440532013000", "GB82WEST12345698765432", "GB29NWBK60161331926819", "GB33BUKB20201555555555",  # noqa: E501
        "FR1420041010050500013M02606", "CH9300762011623852957", "NL91ABNA0417164300", "ES9121000418450200051332",  # noqa: E501
        "AT611904300234573201", "BE68539007547034", "IT60X0542811101000000123456",
    }
)  # fmt: skip
_DOCUMENTED_PARTS = (
    "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l",  # the token on jwt.io
    "QWxhZGRpbjpvcGVuIHNlc2FtZQ",  # Aladdin:open sesame, of RFC 7617
)
FEWEST_DIFFERENT = 5


def is_placeholder(value: str) -> bool:
    """Return whether it opens nothing: a stand-in, a reference, or a documented key."""
    if len(set(value)) < FEWEST_DIFFERENT or _WORDS().search(value) or _REFERENCE().match(value):
        return True
    return is_documented(value) or _is_mostly_typed(value)


def _is_mostly_typed(value: str) -> bool:
    rest = _TYPED_RUN().sub("", value)
    return len(rest) < len(value) and 2 * len(rest) <= len(value)


def is_documented(value: str) -> bool:
    bare = value.replace(" ", "").replace("-", "")
    tail = value.rpartition("_")[2]
    return (
        bare in _DOCUMENTED
        or tail in _DOCUMENTED
        or any(part in value for part in _DOCUMENTED_PARTS)
    )
