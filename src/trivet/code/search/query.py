"""What a code query asks for: words, names, mentioned files, and roles of files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trivet.analyse import is_identifier
from trivet.code.encoder import all_hashes, normalized_name, terms_of, words_of
from trivet.code.file_kind import Role

# A typed query has at most about SHORT_QUERY words; one above LONG_QUERY is a pasted issue.
SHORT_QUERY, LONG_QUERY = 10, 40
# Extra occurrences for a word in an issue's first line, its title.
IN_TITLE = 3
# "parse retry after" may be a name of three words; few names have more than five.
MAX_SPOKEN_WORDS = 5
MAX_QUERY_NAMES = 400
MAX_MODULE_DEPTH = 10

_qualified = re.compile(r"(?<!\w)[^\W\d]\w*+(?:(?:\.|::|#|->)[^\W\d]\w*+)*+")
_quoted = re.compile(r"`([^`\n]{1,80})`|'([\w.:]{1,80})'|\"([\w.:]{1,80})\"")
_path = re.compile(r"[\w\-./\\]++")
_ending = re.compile(r"\.[a-z]\w{0,7}")
_dotted = re.compile(r"(?<!\w)[^\W\d]\w*+(?:(?:\.|::)[^\W\d]\w*+)++")
_separator = re.compile(r"\.|::|#|->")
_asking: dict[Role, re.Pattern[str]] = {
    Role.TEST: re.compile(
        r"\b(?:tests?|tested|testing|specs?|fixtures?|mocks?|benchmarks?)\b", re.IGNORECASE
    ),
    Role.EXAMPLE: re.compile(r"\b(?:examples?|samples?|demos?|tutorials?|usage)\b", re.IGNORECASE),
    Role.DOCUMENTATION: re.compile(
        r"\b(?:docs?|documentation|documented|readme|guides?|changelog)\b", re.IGNORECASE
    ),
    Role.CONFIGURATION: re.compile(
        r"\b(?:config|configuration|yaml|yml|toml|json|workflow|ci|pipeline|dependenc\w*|package)\b",
        re.IGNORECASE,
    ),
    Role.VENDORED: re.compile(r"\b(?:vendor\w*|third[- ]party|bundled)\b", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Name:
    """A name that the query may mean. `sure` is 1 for an identifier, less for joined words."""

    spoken: str
    written: str
    container: str
    sure: float


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    terms: dict[int, int]
    words: tuple[str, ...]  # the terms as strings
    names: tuple[Name, ...]
    files: tuple[str, ...]  # mentioned paths
    modules: tuple[str, ...]  # paths that `package.module.Class` may mean
    wanted: frozenset[Role]
    alone: bool  # the query is a single name
    length: float  # 0 for a short query, 1 for a pasted issue


def read_query(text: str) -> Query:
    words = words_of(text)
    return Query(
        text=text,
        terms=_weighed(text, words),
        words=tuple(dict.fromkeys(terms_of(text))),
        names=_names(text),
        files=_files(text),
        modules=tuple(
            dict.fromkeys(path for token in _dotted.findall(text) for path in _module_paths(token))
        ),
        wanted=frozenset(
            role
            for role, asks in _asking.items()
            if asks.search(_title(text) if _is_issue(words) else text)
        ),
        alone=len(_qualified.findall(text)) == 1,
        length=min(max(len(words) - SHORT_QUERY, 0) / (LONG_QUERY - SHORT_QUERY), 1.0),
    )


def _is_issue(words: list[str]) -> bool:
    """Detect pasted text, which mentions tests without wanting them."""
    return len(words) > LONG_QUERY


def _title(text: str) -> str:
    return text.strip().partition("\n")[0]


def _weighed(text: str, words: list[str]) -> dict[int, int]:
    counts = all_hashes(words)
    if _is_issue(words):
        for term, count in all_hashes(words_of(_title(text))).items():
            counts[term] += IN_TITLE * count
    return counts


def _files(text: str) -> tuple[str, ...]:
    paths = (path.replace("\\", "/").rstrip("./-").lower() for path in _path.findall(text))
    return tuple(dict.fromkeys(path for path in paths if _ending.fullmatch(path, path.rfind("."))))


def _module_paths(dotted: str) -> list[str]:
    """Return `a/b/c` and `a/b` for `a.b.c`, a module or something in it."""
    parts = _separator.split(dotted.lower())[:MAX_MODULE_DEPTH]
    return ["/".join(parts[:length]) for length in range(len(parts), 1, -1)]


def _names(text: str) -> tuple[Name, ...]:
    found: dict[str, Name] = {}
    quoted = {part for groups in _quoted.findall(text) for part in groups if part}
    tokens = _qualified.findall(text)
    alone = len(tokens) == 1
    for token in tokens:
        parts = _separator.split(token)
        sure = 1.0 if alone or token in quoted or is_identifier(token) else 0.3
        for at, part in enumerate(parts):
            _add(found, Name(normalized_name(part), part, parts[at - 1] if at else "", sure))
    for name in _spoken_names(tokens):
        _add(found, name)
    return tuple(found.values())[:MAX_QUERY_NAMES]


def _add(found: dict[str, Name], name: Name) -> None:
    if len(name.spoken) > 1 and (name.spoken not in found or found[name.spoken].sure < name.sure):
        found[name.spoken] = name


def _spoken_names(words: list[str]) -> list[Name]:
    """Join runs of words that may be one name; only the whole query is certain."""
    if len(words) > LONG_QUERY:
        return []
    runs = [
        (words[start : start + length])
        for length in range(2, MAX_SPOKEN_WORDS + 1)
        for start in range(len(words) - length + 1)
    ]
    return [
        Name(
            normalized_name("".join(run)), " ".join(run), "", 1.0 if len(run) == len(words) else 0.7
        )
        for run in runs
    ]
