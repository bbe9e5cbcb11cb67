"""What is written so that it can be told by its form: URLs, paths, identifiers, error codes, dates, quoted terms."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trivet.analyse import is_identifier
from trivet.graph.values import Kind

Mark = tuple[str, Kind]

LONGEST_QUOTED_IN_WORDS = 8
LONGEST_MARK = 80

_url = re.compile(r"(?:https?://|www\.)[^\s<>\"'`)\]}|]+")
_scheme = re.compile(r"^(?:https?://)?(?:www\.)?")
_quoted = re.compile(r"\"([^\"\n]{2,60})\"|“([^”\n]{2,60})”|«([^»\n]{2,60})»|`([^`\n]{2,60})`|[「『《]([^」』》\n]{1,60})[」』》]")
_token = re.compile(r"(?:[~.]{0,2}[/\\]|--?|[@#])?[^\W_](?:[\w.\-/:@#+\\]*[^\W_])?(?:\(\))?")
_code = re.compile(r"^(?:[A-Z]{1,12}[-_]?\d{2,8}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{2,10}-\d+|0x[0-9a-fA-F]{2,16})$")
_not_a_mark = re.compile(r"^(?:e\.g|i\.e|a\.m|p\.m|and/or|either/or|w/o|\w+'\w+|v?s\.|(?:\w\.)+\w)$", re.IGNORECASE)
# Numbers, sizes and times are no concepts: "3.5", "11-inch", "5k", "10:30am".
_numeric = re.compile(r"^[\d.,:/\-x×%+#]+[a-z]*$", re.IGNORECASE)

_MONTHS = "january february march april may june july august september october november december".split()
_month = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS if name != "may") + "|may"
_iso_date = re.compile(r"\b((?:19|20)\d\d)-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?\b")
_day_first = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_month})\.?,? ((?:19|20)\d\d)\b", re.IGNORECASE)
_month_first = re.compile(
    rf"\b({_month})\.? (?:(\d{{1,2}})(?:st|nd|rd|th)?,? )?((?:19|20)\d\d)\b", re.IGNORECASE
)


def marks_in(text: str) -> Iterator[Mark]:
    """Each mark as it is to be known, with its kind. Dates come as ISO dates, URLs without scheme."""
    yield from ((date, "date") for date in _dates(text))
    for match in _url.finditer(text):
        yield _scheme.sub("", match.group()).rstrip("/.,;:!?"), "url"
    rest = _url.sub(" ", text)
    for match in _quoted.finditer(rest):
        quoted = next(group for group in match.groups() if group)
        if len(quoted.split()) <= LONGEST_QUOTED_IN_WORDS and not _numeric.match(quoted):
            yield quoted, "quoted"
    for match in _token.finditer(rest):
        yield from _told_by_form(match.group())


def _told_by_form(token: str) -> Iterator[Mark]:
    bare = token.lstrip("-@#").removesuffix("()")
    if len(bare) < 2 or len(bare) > LONGEST_MARK or _numeric.match(bare) or _not_a_mark.match(bare):
        return
    if _code.match(bare):
        yield bare, "code"
    elif _is_path(bare):
        yield bare, "path"
        name = _separator.split(bare)[-1]
        if name != bare and _is_file(name):
            yield name, "path"
    elif token != bare or is_identifier(bare):
        yield bare, "identifier"


def _is_path(token: str) -> bool:
    segments = [segment for segment in _separator.split(token) if segment]
    return _is_file(segments[-1]) if len(segments) == 1 else (token[0] in "~./\\" or _is_file(segments[-1]))


def _is_file(name: str) -> bool:
    stem, dot, suffix = name.rpartition(".")
    return bool(stem and dot) and suffix.lower() in _SUFFIXES


_separator = re.compile(r"[/\\]")
_SUFFIXES = frozenset(
    "py js ts tsx jsx json toml yaml yml md txt rst html css scss sql sh bash zsh go rs java kt c h cpp hpp cs rb php swift "
    "cfg ini conf env lock log csv tsv xml svg png jpg pdf ipynb db sqlite parquet proto tf service".split()
)


def _dates(text: str) -> Iterator[str]:
    for year, month, day in _iso_date.findall(text):
        yield f"{year}-{month}" + (f"-{day}" if day else "")
    for day, month, year in _day_first.findall(text):
        yield f"{year}-{_number_of(month)}-{int(day):02d}"
    for month, day, year in _month_first.findall(text):
        yield f"{year}-{_number_of(month)}" + (f"-{int(day):02d}" if day else "")


def _number_of(month: str) -> str:
    return f"{next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(month[:3].lower())):02d}"
