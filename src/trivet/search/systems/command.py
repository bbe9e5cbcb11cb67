"""A system that is a program: run for each query, it prints its hits as JSON or as the lines of `rg` or `grep`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from trivet.search.systems.program import Program
from trivet.search.systems.reply import Raw, SystemFailed, SystemQuery, at, decoded, raw_hits
from trivet.search.systems.request import asks, filled_arguments
from trivet.settings.systems import WORDS, OtherSystem

# `grep` and `rg` say by this that nothing matched.
NOTHING_MATCHED = 1
# As `grep -n` and `rg -n` print: a path, a line number, the line. The path may hold a colon; a number may not.
_matching_line = re.compile(r"(?P<path>.+?):(?P<line>[0-9]{1,9}):(?P<text>.*)", re.DOTALL)


def ask_command(system: OtherSystem, asked: SystemQuery, end: float) -> Iterable[Raw]:
    """Where no argument has the query, it stands on standard input."""
    if not asked.words and any(WORDS in part for part in system.command):
        return ()  # an empty regular expression would find everything
    command = filled_arguments(system.command, system, asked)
    said = b"" if asks(system.command) else asked.query.encode() + b"\n"
    with Program(command, system.environment, end, system.most_bytes) as child:
        child.say(said)
        output = child.rest()
        complaint = child.complaint()
        searches_lines = system.format in ("rg", "lines")
        if complaint and not (searches_lines and (output or child.status == NOTHING_MATCHED)):
            raise complaint
    return hits_in(output, system, asked.words)


class Matched(msgspec.Struct, frozen=True):
    """One line of one file that holds a word of the query."""

    path: str
    line: int
    text: str


def hits_in(output: bytes, system: OtherSystem, words: Sequence[str]) -> Iterable[Raw]:
    text = output.decode("utf-8", "replace")
    if system.format == "json":
        return raw_hits(decoded(text), system)
    if system.format == "jsonl":
        return raw_hits([_decoded_alone(line) for line in text.splitlines() if line.strip()], _listed(system))
    matches = _rg(text) if system.format == "rg" else _lines(text)
    return by_file(matches, words)


def _decoded_alone(line: str) -> Any:
    """A line that is no JSON is a hit without an id, and counted as one."""
    try:
        return decoded(line)
    except SystemFailed:
        return None


def by_file(matches: Iterable[Matched], words: Sequence[str]) -> Iterator[Raw]:
    """A hit a file. Its score is how many of the query's words it holds, rare ones counting for more.

    The line that holds most of them is where it is.
    """
    files: dict[str, dict[int, tuple[str, frozenset[str]]]] = {}
    for match in matches:
        folded = match.text.casefold()
        held = frozenset(word for word in words if word in folded)
        files.setdefault(match.path, {})[match.line] = (match.text, held)
    words_of = {path: frozenset().union(*(held for _, held in lines.values())) for path, lines in files.items()}
    found_in = Counter(word for held in words_of.values() for word in held)
    worth = {word: math.log1p(len(files) / count) for word, count in found_in.items()}
    for path, lines in files.items():
        best = min(lines, key=lambda line: (-sum(worth[word] for word in lines[line][1]), line))
        score = math.fsum(sorted(worth[word] for word in words_of[path]))
        yield {"id": path, "score": score, "text": lines[best][0].strip(), "line": best}


def _rg(text: str) -> Iterator[Matched]:
    """The `match` messages of `rg --json`. What is not UTF-8 comes as `bytes` there, and is passed over."""
    for line in text.splitlines():
        message = decoded(line) if line.strip() else None
        if at(message, "type") != "match":
            continue
        path, number, held = (at(message, f"data.{name}") for name in ("path.text", "line_number", "lines.text"))
        if isinstance(path, str) and isinstance(number, int) and isinstance(held, str):
            yield Matched(path, number, held)


def _lines(text: str) -> Iterator[Matched]:
    for line in text.splitlines():
        if found := _matching_line.fullmatch(line):
            yield Matched(found["path"], int(found["line"]), found["text"])


def _listed(system: OtherSystem) -> OtherSystem:
    return msgspec.structs.replace(system, hits="hits")
