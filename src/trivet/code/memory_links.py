"""Checks the `path:symbol` mentions in memories: still there, moved, or gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from trivet.code.code_index import CodeIndex

# `src/app.py:parse_config`, `app.ts:Client.send`, `a.rs:Parser::next`; `app.py:12` is a line.
_LINK = re.compile(
    r"(?<![\w./\\:@+-])(?P<path>[\w./+-]{3,300}+):(?P<symbol>[^\W\d]\w{0,120}+(?:(?:\.|::|#)[^\W\d]\w{0,120}+){0,4})(?![\w/])"
)
_FILE = re.compile(r"[\w./+-]{0,300}[\w+-]\.[A-Za-z]\w{0,7}")
_SEPARATOR = re.compile(r"\.|::|#")
# Maximum number of other places reported for a name.
MAX_PLACES = 3

State = Literal["ok", "moved", "gone", "unknown"]


class Link(msgspec.Struct, frozen=True):
    path: str
    symbol: str


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A link, and whether the file defines the name (ok) or other `places` do (moved).

    gone: the file exists, the name does not. unknown: neither exists, as in another project's
    memory.
    """

    memory: str
    path: str
    symbol: str
    state: State
    places: tuple[str, ...] = ()


def links(text: str) -> tuple[Link, ...]:
    found = (
        Link(_plain(match["path"]), match["symbol"])
        for match in _LINK.finditer(text)
        if _FILE.fullmatch(match["path"])
    )
    return tuple(dict.fromkeys(found))


def check(memories: Iterable[tuple[str, str]], index: CodeIndex) -> Iterator[Checked]:
    """Check the links in memories, given as id and text, without refreshing the index."""
    paths = frozenset(index.paths())
    endings = {path.rpartition(".")[2] for path in paths}
    for memory, text in memories:
        for link in links(text):
            if "/" in link.path or link.path.rpartition(".")[2] in endings:
                yield _checked(memory, link, index, paths)


def _checked(memory: str, link: Link, index: CodeIndex, paths: frozenset[str]) -> Checked:
    hits = [
        hit for hit in index.symbol(link.symbol).hits if hit.symbol.endswith(_last(link.symbol))
    ]
    inside = [hit for hit in hits if _ends_with(hit.symbol, link.symbol)]
    places = tuple(f"{hit.path}:{hit.start}" for hit in inside or hits)[:MAX_PLACES]
    state: State
    if any(_same_file(hit.path, link.path) for hit in inside):
        state, places = "ok", ()
    elif places:
        state = "moved"
    else:
        state = "gone" if any(_same_file(path, link.path) for path in paths) else "unknown"
    return Checked(memory=memory, path=link.path, symbol=link.symbol, state=state, places=places)


def _plain(path: str) -> str:
    return path.removeprefix("./")


def _last(symbol: str) -> str:
    return _SEPARATOR.split(symbol)[-1]


def _ends_with(defined: str, named: str) -> bool:
    wanted = _SEPARATOR.split(named)
    return _SEPARATOR.split(defined)[-len(wanted) :] == wanted


def _same_file(path: str, named: str) -> bool:
    """Accept shortened paths: `app.py` names `src/app.py`."""
    return path == named or path.endswith(f"/{named}")
