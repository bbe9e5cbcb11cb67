"""Concepts known by their form: URLs, paths, identifiers, error codes, quoted terms and dates."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trivet.analyse import is_identifier
from trivet.types import ConceptKind

PatternMatch = tuple[str, ConceptKind]

LONGEST_QUOTED_IN_WORDS = 8
LONGEST_QUOTED = 60
MAX_PATTERN_CHARACTERS = 80

_url = re.compile(r"(?:https?://|www\.)[^\s<>\"'`)\]}|]+")
_scheme = re.compile(r"^(?:https?://)?(?:www\.)?")
# The value of an attribute (`alt="..."`) is no quotation. No quotation holds the mark that opens it: a run of such
# marks would else be read to its end from each of them.
_quoted = re.compile(
    r"(?<![\w=])\"([^\"\n]+)\"(?!\w)|“([^“”\n]+)”|«([^«»\n]+)»|(?<!`)`([^`\n]+)`(?!`)|[「『《]([^「『《」』》\n]+)[」』》]"
)
_token = re.compile(r"(?:[~.]{0,2}[/\\]|--?|[@#])?[^\W_](?:[\w.\-/:@#+\\]*[^\W_])?(?:\(\))?")
_code = re.compile(r"^(?:[A-Z]{1,12}[-_]?\d{2,8}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{2,10}-\d+|0x[0-9a-fA-F]{2,16})$")
_not_a_mark = re.compile(r"^(?:e\.g|i\.e|a\.m|p\.m|and/or|either/or|w/o|\w+'\w+|v?s\.|(?:\w\.)+\w)$", re.IGNORECASE)
# Numbers, sizes and times are no concepts: "3.5", "11-inch", "5k", "10:30am".
_numeric = re.compile(r"^[\d.,:/\-x×%+#]++[a-z]*$", re.IGNORECASE)


def find_patterns(text: str) -> Iterator[PatternMatch]:
    """Each mark with its kind; URLs without their scheme. `dates_in` takes the dates out before."""
    for match in _url.finditer(text):
        yield _scheme.sub("", match.group()).rstrip("/.,;:!?"), "url"
    rest = _url.sub(" ", text)
    for match in _quoted.finditer(rest):
        quoted = next(group for group in match.groups() if group)
        if _is_term(quoted):
            yield quoted, "quoted"
    for token in _token.findall(rest):
        if not (token.isalpha() and token[1:].islower()):  # an ordinary word, as most are
            yield from _by_form(token)


def _is_term(quoted: str) -> bool:
    short = len(quoted) <= LONGEST_QUOTED and len(quoted.split()) <= LONGEST_QUOTED_IN_WORDS
    return short and not _numeric.match(quoted)


def _by_form(token: str) -> Iterator[PatternMatch]:
    bare = token.lstrip("-@#").removesuffix("()")
    if len(bare) < 2 or len(bare) > MAX_PATTERN_CHARACTERS or _not_a_mark.match(bare):
        return
    if _code.match(bare):
        yield bare, "code"
    elif _numeric.match(bare):
        return
    elif _is_path(bare):
        yield bare, "path"
        name = _separator.split(bare)[-1]
        if name != bare and _is_file(name):
            yield name, "path"
    elif is_identifier(bare) or token.endswith("()") or token[0] == "@" or (token.startswith("--") and "-" in bare):
        yield bare, "identifier"


def _is_path(token: str) -> bool:
    segments = [segment for segment in _separator.split(token) if segment]
    return _is_file(segments[-1]) if len(segments) == 1 else (token[0] in "~./\\" or _is_file(segments[-1]))


def _is_file(name: str) -> bool:
    stem, dot, suffix = name.rpartition(".")
    return bool(stem and dot) and suffix.lower() in _SUFFIXES


_separator = re.compile(r"[/\\]")
_SUFFIXES = frozenset(
    "py js ts tsx jsx json toml yaml yml md txt rst html css scss sql sh bash zsh go rs java kt c h cpp hpp cs rb php "
    "swift cfg ini conf env lock log csv tsv xml svg png jpg pdf ipynb db sqlite parquet proto tf service".split()
)


_MONTHS = "january february march april may june july august september october november december".split()
_month = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS if name != "may") + "|may|sept"
_day = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_year = r"(?P<year>(?:19|20)\d\d)"
_SPELLINGS = (
    re.compile(rf"\b{_year}-(?P<month>0[1-9]|1[0-2])-{_day}\b"),
    re.compile(rf"\b{_year}-(?P<month>0[1-9]|1[0-2])\b(?!-\d)"),
    re.compile(rf"\b{_day}(?:st|nd|rd|th|\.)?(?: of)? (?P<month>{_month})\.?,? {_year}\b", re.IGNORECASE),
    re.compile(rf"\b(?P<month>{_month})\.? {_day}(?:st|nd|rd|th)?,? {_year}\b", re.IGNORECASE),
    re.compile(rf"\b(?P<month>{_month})\.?,? {_year}\b", re.IGNORECASE),
)


def dates_in(text: str) -> tuple[list[str], str]:
    """The dates in any common spelling as ISO dates or months, and the text without them.

    Without them, so that no other concept is made of their parts.
    """
    dates: list[str] = []
    if "19" not in text and "20" not in text:  # every spelling has a year
        return dates, text

    def take(match: re.Match[str]) -> str:
        parts = match.groupdict()
        day = f"-{int(parts['day']):02d}" if parts.get("day") else ""
        dates.append(f"{parts['year']}-{_number(parts['month'])}{day}")
        return " , "  # a comma, so that the names on both sides do not become one

    for spelling in _SPELLINGS:
        text = spelling.sub(take, text)
    return dates, text


def _number(month: str) -> str:
    if month.isdigit():
        return month
    return f"{next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(month[:3].lower())):02d}"
