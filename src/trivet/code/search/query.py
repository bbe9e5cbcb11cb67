"""What a question about code asks for: its words, the names in it, files it mentions, which kinds of file it wants."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trivet.analyse import is_identifier
from trivet.code.encoder import all_hashes, normalized_name, terms_of, words_of
from trivet.code.file_kind import Role

# A question has about so many words at most; more than the other number and it is a pasted issue.
SHORT_QUERY, LONG_QUERY = 10, 40
# A word of an issue's first line, its title, counts as so many more.
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
    """A name that the query may mean. `sure` is 1 where it is written as an identifier, less where words make it up."""

    spoken: str
    written: str
    container: str
    sure: float


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    terms: dict[int, int]
    words: tuple[str, ...]  # the same terms as texts
    names: tuple[Name, ...]
    files: tuple[str, ...]  # paths as they are mentioned
    modules: tuple[str, ...]  # `package.module.Class` as the paths that it may mean
    wanted: frozenset[Role]
    alone: bool  # whether it is one name and nothing more
    length: float  # 0 for a word, 1 for a pasted issue


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
    """Whether it is a pasted text, which speaks of tests, examples and documentation without asking for them."""
    return len(words) > LONG_QUERY


def _title(text: str) -> str:
    return text.strip().partition("\n")[0]


def _weighed(text: str, words: list[str]) -> dict[int, int]:
    """How often the query says each term."""
    counts = all_hashes(words)
    if _is_issue(words):
        for term, count in all_hashes(words_of(_title(text))).items():
            counts[term] += IN_TITLE * count
    return counts


def _files(text: str) -> tuple[str, ...]:
    """What is written like a path with an ending: `store/table.py`, `C:\\work\\table.py`, `table.py`."""
    paths = (path.replace("\\", "/").rstrip("./-").lower() for path in _path.findall(text))
    return tuple(dict.fromkeys(path for path in paths if _ending.fullmatch(path, path.rfind("."))))


def _module_paths(dotted: str) -> list[str]:
    """`a.b.c` may be the module a/b/c, or something in a/b."""
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
    """Runs of words that together may be one name: the whole query surely, a part of it perhaps."""
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
