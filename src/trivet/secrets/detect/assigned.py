"""Secrets recognised by the name before them: `password=...`, `api_key: ...`, "the password is ...".

The form of such a value is free, so the name must say that it is a secret and the value must look like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trivet.secrets.detect.value_shape import (
    LazyPattern,
    is_password,
    is_placeholder,
    is_token,
    is_word_like_password,
)

AWS_SECRET_KEY_LENGTH = 40
_PASSWORD = r"pass(?:word|wort|wd|phrase|code)?|pwd|psk|contrase(?:ñ|n)a|kennwort|mot de passe"
_TOKEN = (
    r"api[-_ ]?key|access[-_ ]?key|secret[-_ ]?key|auth[-_ ]?key|signing[-_ ]?key|encryption[-_ ]?key|master[-_ ]?key|"
    r"private[-_ ]?key|account[-_ ]?key|license[-_ ]?key|client[-_ ]?secret|secret|token|credential|auth"
)
# Ends of names that are about a secret and do not hold one: token_count, password_file, secret_name.
_ABOUT = LazyPattern(
    r"(?:id|ids|url|uri|name|path|file|dir|type|count|limit|budget|length|len|size|ttl|expiry|expires?|expires_in|version|"
    r"hash|policy|manager|field|class|provider|endpoint|header|hint|prompt|template|ref|arn|alias|usage|format|"
    r"rotation|algorithm|rounds|encoder|strategy|method|mode|flow|store|backend|plugin|error|check|regex|pattern|label|at|per_\w{1,30})$"
)
# A word of its own, or the capitalised part of a name such as dbPassword; no unbounded repeats, so no slow texts.
_EDGE = r"(?:(?<![A-Za-z])|(?<=(?-i:[a-z]))(?=(?-i:[A-Z]))|(?=password|passwd|secret|token|apikey))"
_REST = r"(?P<rest>s?[-_.][\w.-]{0,30}?|s?(?-i:[A-Z])\w{0,30}?|s|\d{1,2})?"
_JOIN = (
    r"[\"'`]?\]?(?P<join>\s{0,3}(?::=|=>|==?|:)\s{0,3}|\s{1,3}(?:is|was|lautet|ist|es|est|to|are)(?:\s+now)?:?\s{1,3}|"
    r"\s?,\s?(?=[\"'])|\s(?=[\"'`]))"
)
_VALUE = r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{4,400})(?P=quote)|(?P<bare>[^\s\"'`,;<>|)\]}]{4,400}))"


def _compiled(words: str) -> LazyPattern:
    return LazyPattern(rf"{_EDGE}(?:{words}){_REST}{_JOIN}{_VALUE}", re.IGNORECASE)


# Where such a name may begin: the expensive patterns are tried only there.
_NEAR = LazyPattern(
    r"pass|pwd|psk|contrase|kennwort|mot de|api|a(?:cces|uth|ccount)|s(?:ecret|igning)|encr|master|priv|licen|client|"
    r"token|cred",
    re.IGNORECASE,
)
# The same in a text of plain letters, which `in` finds in a twentieth of the time; most texts hold none of them.
_STARTS = (
    "mot de",
    *"pass pwd psk contrase kennwort api acces auth account secret signing encr master priv licen client".split(),
    *"token cred".split(),
)
_PASSWORDS = _compiled(_PASSWORD)
_TOKENS = _compiled(_TOKEN)
_PROSE = LazyPattern(r"^\s+(?:is|was|lautet|ist|es|est|to|are)", re.IGNORECASE)


def assigned(text: str) -> Iterator[tuple[str, int, int]]:
    """Kind, start and stop of each secret."""
    lower = text.lower()
    if text.isascii() and not any(start in lower for start in _STARTS):
        return
    end = 0
    for near in _NEAR().finditer(text):
        if near.start() < end:
            continue
        if (match := _PASSWORDS().match(text, near.start())) and (span := _password(match)) is not None:
            yield "password", *span
            end = span[1]
        elif (match := _TOKENS().match(text, near.start())) and (span := _token(match)) is not None:
            yield _kind(match), *span
            end = span[1]


def _password(match: re.Match[str]) -> tuple[int, int] | None:
    value, start = _value(match)
    if _is_verb(match) or _speaks_about(match) or is_placeholder(value):
        return None
    firm = match["quoted"] is not None or "=" in match["join"]
    return (start, start + len(value)) if (is_word_like_password if firm else is_password)(value) else None


def _is_verb(match: re.Match[str]) -> bool:
    """Pass `statement_cache_size=0`: with nothing between them it is no name and its value."""
    return not match["join"].strip() and match.string[match.start() : match.start("join")].lower() == "pass"


def _token(match: re.Match[str]) -> tuple[int, int] | None:
    value, start = _value(match)
    if _speaks_about(match) or is_placeholder(value) or not is_token(value):
        return None
    return start, start + len(value)


def _kind(match: re.Match[str]) -> str:
    """Amazon's secret keys have no prefix: their name and their forty characters identify them."""
    name = match.string[max(0, match.start() - len("aws_")) : match.start("join")].lower()
    of_amazon = "aws" in name or "secretaccesskey" in name.replace("_", "")
    return "aws-secret-key" if of_amazon and len(_value(match)[0]) == AWS_SECRET_KEY_LENGTH else "token"


def _value(match: re.Match[str]) -> tuple[str, int]:
    """The value and its start, without marks that end the sentence around it."""
    if match["quoted"] is not None:
        return match["quoted"], match.start("quoted")
    value = match["bare"]
    stripped = value.rstrip(".:?") if _PROSE().match(match["join"]) or value[-1:] in ".:" else value
    return stripped.rstrip("\\"), match.start("bare")


def _speaks_about(match: re.Match[str]) -> bool:
    rest = (match["rest"] or "").lower().strip("-_.")
    return bool(rest and _ABOUT().search(rest))
