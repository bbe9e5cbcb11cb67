"""Rule-based extraction of concepts from titles, tags, names, dates, code, and known forms.

Code is `about` what it defines; what it calls is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from trivet.analyse import is_identifier
from trivet.graph.concepts import Mention, Role, TimeBudget, canonical, singular
from trivet.graph.names import is_name, names_in
from trivet.types import ConceptKind

# Maximum concepts of a text, at most 32 KiB: further ones say little about its subject.
MAX_CONCEPTS = 200
LONGEST_TITLE_IN_WORDS = 8
# Characters. Longer labels are runs of punctuation or generated addresses.
MAX_LABEL_CHARACTERS = 160

MAY_BE_PLURAL: frozenset[ConceptKind] = frozenset({"name", "title", "tag", "quoted"})
# Kinds recognized by form, even in quotes: a quoted `src/main.py` is a path.
KNOWN_BY_FORM: frozenset[ConceptKind] = frozenset({"identifier", "path", "code", "url"})

_parenthetical = re.compile(r"[(\[][^()\[\]]*[)\]]$")
_lower_word = re.compile(r"(?<![\w'’])[a-z][a-z'’]+")
_STRENGTH: dict[Role, int] = {"about": 2, "in": 1, "maybe": 0}


def extract(
    title: str | None, content: str, tags: Sequence[str] = (), time: TimeBudget | None = None
) -> tuple[Mention, ...]:
    """Return every concept once, in its strongest role; partial when `time` is over."""
    time = time or TimeBudget()
    found: dict[str, Mention] = {}
    if title:
        _add_title(found, title, time)
    for tag in tags:
        _add(found, tag, "tag", "about")
    prose, code = split_code(content)
    for defined in takewhile(lambda _: time.has_time_left(), definitions(code)):
        _add(found, defined, "identifier", "about")
    _add_text(found, prose, "in", time)
    return tuple(found.values())[:MAX_CONCEPTS]


def _add_text(found: dict[str, Mention], text: str, role: Role, time: TimeBudget) -> None:
    """Match patterns first, so that an error code is not taken for a name."""
    dates, rest = dates_in(text)
    for date in dates:
        _add(found, date, "date", role)
    for mark, kind in takewhile(lambda _: time.has_time_left(), find_patterns(rest)):
        _add(found, mark, kind, role)
    lower = set(_lower_word.findall(rest))
    for name in takewhile(lambda _: time.has_time_left(), names_in(rest)):
        if name.sure:
            _add(found, name.text, "name", role)
        elif (
            name.text.lower() not in lower
        ):  # otherwise it is capitalized only as the first word of a sentence
            _add(found, name.text, "name", "maybe")


def _add_title(found: dict[str, Mention], title: str, time: TimeBudget) -> None:
    whole = _parenthetical.sub("", title.rstrip()).rstrip()
    if len(whole.split()) <= LONGEST_TITLE_IN_WORDS:
        _add(found, whole, "title", "about")
    _add_text(found, title, "about", time)


def _add(found: dict[str, Mention], text: str, kind: ConceptKind, role: Role) -> None:
    if len(text) > MAX_LABEL_CHARACTERS:
        return
    name = canonical(singular(text) if kind in MAY_BE_PLURAL else text)
    if len(name) < 2 or name.isdigit():
        return
    if kind not in ("tag", "title") and not is_name(text):
        return
    known = found.get(name)
    if known is None:
        found[name] = Mention(name=name, label=_label(text), kind=kind, role=role)
        return
    stronger = role if _STRENGTH[role] > _STRENGTH[known.role] else known.role
    truer = kind if known.kind == "quoted" and kind in KNOWN_BY_FORM else known.kind
    found[name] = Mention(name=name, label=known.label, kind=truer, role=stronger)


def _label(text: str) -> str:
    return " ".join(text.split()).removesuffix("'s").removesuffix("\u2019s")


PatternMatch = tuple[str, ConceptKind]

LONGEST_QUOTED_IN_WORDS = 8
LONGEST_QUOTED = 60
MAX_PATTERN_CHARACTERS = 80

_url = re.compile(r"(?:https?://|www\.)[^\s<>\"'`)\]}|]+")
_scheme = re.compile(r"^(?:https?://)?(?:www\.)?")
# An attribute's value (`alt="..."`) is not a quotation. None contains its opening mark: a run of
# them would be scanned from each.
_quoted = re.compile(
    r"(?<![\w=])\"([^\"\n]+)\"(?!\w)|“([^“”\n]+)”|«([^«»\n]+)»|(?<!`)`([^`\n]+)`(?!`)|[「『《]([^「『《」』》\n]+)[」』》]"
)
_token = re.compile(r"(?:[~.]{0,2}[/\\]|--?|[@#])?[^\W_](?:[\w.\-/:@#+\\]*[^\W_])?(?:\(\))?")
_code = re.compile(
    r"^(?:[A-Z]{1,12}[-_]?\d{2,8}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{2,10}-\d+|0x[0-9a-fA-F]{2,16})$"
)
_not_a_mark = re.compile(
    r"^(?:e\.g|i\.e|a\.m|p\.m|and/or|either/or|w/o|\w+'\w+|v?s\.|(?:\w\.)+\w)$", re.IGNORECASE
)
# Not concepts: "3.5", "11-inch", "5k", "10:30am".
_numeric = re.compile(r"^[\d.,:/\-x×%+#]++[a-z]*$", re.IGNORECASE)


def find_patterns(text: str) -> Iterator[PatternMatch]:
    """Yield each term known by its form; dates must be removed before."""
    for match in _url.finditer(text):
        yield _scheme.sub("", match.group()).rstrip("/.,;:!?"), "url"
    rest = _url.sub(" ", text)
    for match in _quoted.finditer(rest):
        quoted = next(group for group in match.groups() if group)
        if _is_term(quoted):
            yield quoted, "quoted"
    for token in _token.findall(rest):
        if not (token.isalpha() and token[1:].islower()):  # skip ordinary words
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
    elif (
        is_identifier(bare)
        or token.endswith("()")
        or token[0] == "@"
        or (token.startswith("--") and "-" in bare)
    ):
        yield bare, "identifier"


def _is_path(token: str) -> bool:
    segments = [segment for segment in _separator.split(token) if segment]
    return (
        _is_file(segments[-1])
        if len(segments) == 1
        else (token[0] in "~./\\" or _is_file(segments[-1]))
    )


def _is_file(name: str) -> bool:
    stem, dot, suffix = name.rpartition(".")
    return bool(stem and dot) and suffix.lower() in _SUFFIXES


_separator = re.compile(r"[/\\]")
_SUFFIXES = frozenset(
    "py js ts tsx jsx json toml yaml yml md txt rst html css scss sql sh bash zsh go rs java kt c "
    "h cpp hpp cs rb php swift cfg ini conf env lock log csv tsv xml svg png jpg pdf ipynb db "
    "sqlite parquet proto tf service".split()
)


_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_month = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS if name != "may") + "|may|sept"
_day = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_year = r"(?P<year>(?:19|20)\d\d)"
_SPELLINGS = (
    re.compile(rf"\b{_year}-(?P<month>0[1-9]|1[0-2])-{_day}\b"),
    re.compile(rf"\b{_year}-(?P<month>0[1-9]|1[0-2])\b(?!-\d)"),
    re.compile(
        rf"\b{_day}(?:st|nd|rd|th|\.)?(?: of)? (?P<month>{_month})\.?,? {_year}\b", re.IGNORECASE
    ),
    re.compile(rf"\b(?P<month>{_month})\.? {_day}(?:st|nd|rd|th)?,? {_year}\b", re.IGNORECASE),
    re.compile(rf"\b(?P<month>{_month})\.?,? {_year}\b", re.IGNORECASE),
)


def dates_in(text: str) -> tuple[list[str], str]:
    """Return the dates in ISO form, and the text without them."""
    dates: list[str] = []
    if "19" not in text and "20" not in text:  # every spelling contains a year
        return dates, text

    def take(match: re.Match[str]) -> str:
        parts = match.groupdict()
        day = f"-{int(parts['day']):02d}" if parts.get("day") else ""
        dates.append(f"{parts['year']}-{_number(parts['month'])}{day}")
        return " , "  # a comma, so that names on both sides stay separate

    for spelling in _SPELLINGS:
        text = spelling.sub(take, text)
    return dates, text


def _number(month: str) -> str:
    if month.isdigit():
        return month
    return f"{next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(month[:3].lower())):02d}"  # noqa: E501


_code_line = re.compile(
    r"^\s*(?:def|class|import|from \S+ import|return|if|elif|else|for|while|try|except|"
    r"finally|with|raise|yield|async|await|function|const|let|var|public|private|static|void|int|func|fn|package|use|struct|impl|select|insert|update|create)\b"
    r".*[:;{})\]=]|[;{}]\s*+$|^\s*[\w.\[\]\"']++\s*+[-+*/|&]?=\s*\S|^\s*[\w.]++\(.*\)\s*+(?:;\s*+)?$|^\s*(?:@\w|#include|//|/\*)",
    re.IGNORECASE,
)
_defined = re.compile(
    r"[ \t]*(?:(?:export|public|private|static|async|default)[ \t]+){0,4}"
    r"(?:def|class|function|func|fn|struct|interface|type|trait|module|namespace|"
    r"CREATE[ \t]+(?:TABLE|VIEW|INDEX))"
    r"[ \t]+"
    r"([A-Za-z_]\w{2,})",
    re.IGNORECASE,
)
# Share of lines that makes a text code without fences.
SHARE_OF_CODE_LINES = 0.5
FEWEST_LINES = 3
# Readable code has shorter lines.
LONGEST_LINE = 300
FENCES = ("```", "~~~")


def split_code(text: str) -> tuple[str, str]:
    prose: list[str] = []
    code: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark, after = line.strip()[:3], line.strip()[3:]
        if mark in FENCES and mark == (fence or mark) and mark not in after:
            fence = "" if fence else mark
        else:
            (code if fence else prose).append(line)
    if _is_code(prose):
        return "", "\n".join([*code, *prose])
    return "\n".join(prose), "\n".join(code)


def definitions(code: str) -> list[str]:
    return [
        match.group(1)
        for line in code.splitlines()
        if (match := _defined.match(line[:LONGEST_LINE]))
    ]


def _is_code(written: list[str]) -> bool:
    lines = [line[:LONGEST_LINE] for line in written if line.strip()]
    if lines and _defined.match(lines[0]) and lines[0].rstrip().endswith((":", "{", "(", ",")):
        return True
    return len(lines) >= FEWEST_LINES and sum(
        map(_looks_like_code, lines)
    ) >= SHARE_OF_CODE_LINES * len(lines)


def _looks_like_code(line: str) -> bool:
    return _code_line.search(line) is not None
