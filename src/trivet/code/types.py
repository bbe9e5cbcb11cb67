"""The values that code search passes on: definitions and chunks of a file, files of a tree, hits and answers.

What can be asked of a code index, as values: a question crosses to the resident process, and its answer back.

The reason for a hit in plain words, for people and for agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from trivet.code.code_index import CodeIndex


# `export`: a name that a file passes on and another defines, as `pub use` and `export ... from` do.
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
    """A name that a file defines. Lines count from 1; `end` is the last line that belongs to it."""

    name: str
    kind: Kind
    start: int
    end: int
    container: str = ""  # qualified name of what it is defined in: `Outer.Inner`
    signature: str = ""  # its first line or lines up to the body, squeezed to one line
    doc: str = ""  # its docstring, or the comment right above it


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of whole lines that is found and shown as one. Chunks of a file cover it without overlap."""

    start: int
    end: int
    text: str
    kind: Kind = "text"
    symbol: str = ""  # qualified name of the definition it begins, or is part of
    heading: str = ""  # signature of the definition around it, where the chunk does not show it
    defines: tuple[
        int, ...
    ] = ()  # the definitions that begin here, by their place in the file's list


class ParsedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file cut up. `language` is a grammar's name, or `markdown`, `config`, `text`."""

    language: str
    definitions: tuple[Definition, ...]
    chunks: tuple[Chunk, ...]


class TreeFile(msgspec.Struct, frozen=True, gc=False):
    """A file of a tree: its path from the root with slashes, and what identifies its bytes (git's blob id)."""

    path: str
    blob: str
    size: int


class KeyedFile(NamedTuple):
    """A file of the tree and the key of its facts."""

    file: TreeFile
    key: bytes


class LeftOut(msgspec.Struct, frozen=True):
    """A file, or a folder with a slash at its end, that is not indexed, and why."""

    path: str
    reason: str


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """What a root holds now."""

    files: tuple[TreeFile, ...]
    left_out: tuple[LeftOut, ...] = ()


class CodeFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing set lets all through. `tests`: True for tests alone, False for none."""

    path: str = ""
    lang: str = ""
    kind: str = ""
    tests: bool | None = None


class CodeHit(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that answers. `why` has what each leg and step gave it."""

    path: str
    start: int
    end: int
    symbol: str
    kind: Kind
    score: float
    why: Mapping[str, float | str]
    signature: str = ""
    snippet: str = ""
    snippet_start: int = 0  # the line that the snippet begins with


class CodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the tree the index knows. `stale` are files that changed after the index was brought up to date."""

    root: str
    files: int
    chunks: int
    symbols: int
    embedded: int  # chunks that have a vector
    left_out: int = 0
    indexed: int = 0  # files that were parsed just now, by the look before this answer
    stale: tuple[str, ...] = ()


class CodeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    query: str
    hits: tuple[CodeHit, ...]
    status: CodeStatus


DEFAULT_LIMIT = 10
# About a screen of code for each of the first hits: what a person looks through, or an agent can afford to read.
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
    """What the index says as it stands; the caller has refreshed it."""
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


# What a leg of the search, or of `related`, says in words.
_LEGS = {
    "dense": "by meaning",
    "meaning": "by meaning",
    "paths": "path",
    "uses it": "uses it",
    "used by it": "is used",
}
_NAMED = {"exact": "named so", "spoken": "named so but for case and joiners"}
_ROLES = {
    "test": "a test",
    "example": "an example",
    "documentation": "documentation",
    "vendored": "other people's code",
    "configuration": "configuration",
    "declaration": "a declaration",
}


def reason(hit: CodeHit) -> str:
    """The strongest kind of evidence first: `defines parse_retry_after; words: retry, after; path`."""
    why = hit.why
    parts = [f"defines {why['defines']}"] if "defines" in why else []
    parts += [_NAMED[str(why["name"])]] if why.get("name") in _NAMED else []
    parts += [f"words: {', '.join(str(why['words']).split())}"] if "words" in why else []
    parts += [told for leg, told in _LEGS.items() if leg in why]
    if (role := why.get("role")) in _ROLES:
        parts.append(_ROLES[str(role)] + (", so it comes later" if "demoted" in why else ""))
    return "; ".join(dict.fromkeys(parts))
