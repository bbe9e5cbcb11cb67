"""Values that code search passes around, also to and from the resident process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from trivet.code.code_index import CodeIndex


# `export`: a name that this file re-exports, as `pub use` and `export ... from` do.
Kind = Literal[
    "function",
    "method",
    "class",
    "interface",
    "enum",
    "type",
    "variable",
    "macro",
    "module",
    "export",
    "section",
    "text",
]


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A name that a file defines; lines count from 1, and `end` is inclusive."""

    name: str
    kind: Kind
    start: int
    end: int
    container: str = ""  # qualified name of the enclosing definition: `Outer.Inner`
    signature: str = ""  # source up to the body, on one line
    doc: str = ""  # its docstring, or the comment directly above it


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Whole lines, indexed and shown as one; chunks cover a file without overlap."""

    start: int
    end: int
    text: str
    kind: Kind = "text"
    symbol: str = ""  # qualified name of the definition it begins or continues
    heading: str = ""  # signature of the enclosing definition, if the chunk does not show it
    defines: tuple[int, ...] = ()  # definitions that begin here: positions in the file's list


class ParsedFile(msgspec.Struct, frozen=True, kw_only=True):
    language: str
    definitions: tuple[Definition, ...]
    chunks: tuple[Chunk, ...]


class TreeFile(msgspec.Struct, frozen=True, gc=False):
    """A file's path from the root, with slashes, and git's blob id of its bytes."""

    path: str
    blob: str
    size: int


class KeyedFile(NamedTuple):
    file: TreeFile
    key: bytes


class LeftOut(msgspec.Struct, frozen=True):
    """A path that is not indexed; a folder's ends with a slash."""

    path: str
    reason: str


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    files: tuple[TreeFile, ...]
    left_out: tuple[LeftOut, ...] = ()


class CodeFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Filters; defaults match everything. `tests`: True for only tests, False for none."""

    path: str = ""
    lang: str = ""
    kind: str = ""
    tests: bool | None = None


class CodeHit(msgspec.Struct, frozen=True, kw_only=True):
    """A matching chunk; `why` maps legs and ranking steps to what they contributed."""

    path: str
    start: int
    end: int
    symbol: str
    kind: Kind
    score: float
    why: Mapping[str, float | str]
    signature: str = ""
    snippet: str = ""
    snippet_start: int = 0  # line number of the snippet's first line


class CodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a tree is indexed. `stale` names files that changed since."""

    root: str
    files: int
    chunks: int
    symbols: int
    embedded: int  # chunks that have a vector
    left_out: int = 0
    indexed: int = 0  # files parsed by the refresh before this answer
    stale: tuple[str, ...] = ()


class CodeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    query: str
    hits: tuple[CodeHit, ...]
    status: CodeStatus


DEFAULT_LIMIT = 10
# Tokens: about one screen of code for each of the first hits, which an agent can afford.
DEFAULT_BUDGET = 1_500


class Search(msgspec.Struct, frozen=True, kw_only=True, tag="search"):
    query: str
    limit: int = DEFAULT_LIMIT
    filters: CodeFilters = CodeFilters()
    recipe: str = "default"
    budget: int | None = DEFAULT_BUDGET


class Symbol(msgspec.Struct, frozen=True, kw_only=True, tag="symbol"):
    name: str
    limit: int = DEFAULT_LIMIT
    budget: int | None = None


class Related(msgspec.Struct, frozen=True, kw_only=True, tag="related"):
    place: str
    limit: int = DEFAULT_LIMIT
    budget: int | None = None


Question = Search | Symbol | Related


def answer(index: CodeIndex, question: Question) -> CodeAnswer:
    """Answer without refreshing the index."""
    match question:
        case Search():
            return index.search(
                question.query,
                limit=question.limit,
                filters=question.filters,
                recipe=question.recipe,
                budget=question.budget,
            )
        case Symbol():
            return index.symbol(question.name, question.limit, question.budget)
        case Related():
            return index.related(question.place, question.limit, question.budget)


# How a reason names the legs of `search` and `related`.
_LEGS = {
    "dense": "by meaning",
    "meaning": "by meaning",
    "paths": "path",
    "uses it": "uses it",
    "used by it": "is used",
}
_NAMED = {"exact": "exact name", "spoken": "same name but for case and separators"}
_ROLES = {
    "test": "a test",
    "example": "an example",
    "documentation": "documentation",
    "vendored": "third-party code",
    "configuration": "configuration",
    "declaration": "a declaration",
}


def reason(hit: CodeHit) -> str:
    """Return why a hit was found: `defines parse; words: retry, after; path`."""
    why = hit.why
    parts = [f"defines {why['defines']}"] if "defines" in why else []
    parts += [_NAMED[str(why["name"])]] if why.get("name") in _NAMED else []
    parts += [f"words: {', '.join(str(why['words']).split())}"] if "words" in why else []
    parts += [phrase for leg, phrase in _LEGS.items() if leg in why]
    if (role := why.get("role")) in _ROLES:
        parts.append(_ROLES[str(role)] + (", ranked lower" if "demoted" in why else ""))
    return "; ".join(dict.fromkeys(parts))
