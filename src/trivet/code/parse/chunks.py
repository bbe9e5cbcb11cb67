"""Splits a file into chunks along its regions, merging small and splitting large ones."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, repeat
from operator import add

import msgspec

from trivet.code.types import Chunk, Definition, Kind


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that belong together: a definition, an implementation block, a section."""

    top: int  # first line, counted from 1, of the comment above it, else `start`
    start: int
    end: int
    kind: Kind
    name: str  # qualified
    signature: str = ""
    definition: Definition | None = None  # None for a section or `impl Trait for Type`


SOFT = 1000  # characters of merged neighbors, and of the parts of a split region
WHOLE = 1500  # a definition up to this size stays whole
HARD = 2000  # maximum length of a chunk's text
TINY = 120  # smaller pieces say nothing alone: a closing brace, the first line of a class
HEADING_CHARACTERS = 400
HEADING_DEPTH = 4

_MERE_NAMES = ("variable", "export")
_FILE = -1  # stands for the owner of lines that are in no region
# A line that begins with one of these continues the statement before it.
_CONTINUES = (
    "}", ")", "]", "end", "else", "elif", "elsif", "except", "finally", "catch", "rescue",
    "ensure", "then", "do", "{", "|", "&&", "||", ",", "esac", "fi", "done", "where", "in ", "of ",
)  # fmt: skip


class _Piece(msgspec.Struct):
    """Lines that stay together; `owner` is the region that was split."""

    start: int
    end: int
    owner: int
    begins: bool = False


def cut(lines: Sequence[str], regions: Sequence[Region]) -> tuple[Chunk, ...]:
    """Return chunks that cover all lines once; `regions` are sorted, outer before inner."""
    if not any(line.strip() for line in lines):
        return ()
    sizes = [0, *accumulate(map(add, map(len, lines), repeat(1)))]
    parents = [_FILE] * len(regions)
    pieces = _merged(_pieces(lines, sizes, regions, parents), sizes)
    return _chunks(lines, pieces, regions, parents)


def _pieces(
    lines: Sequence[str], sizes: Sequence[int], regions: Sequence[Region], parents: list[int]
) -> list[_Piece]:
    pieces: list[_Piece] = []
    open_regions = [(len(lines), _FILE)]
    at = 1  # the first line that is not in a piece yet

    def take(last: int, owner: int, *, begins: bool = False) -> None:
        nonlocal at
        while (
            pieces
            and at <= last
            and not lines[at - 1].strip()
            and sizes[at] - sizes[pieces[-1].start - 1] <= HARD
        ):
            pieces[-1].end = at  # blank lines belong to the piece above
            at += 1
        if last < at:
            return
        for start, end in windows(lines, sizes, at, last):
            pieces.append(_Piece(start, end, owner, begins and start == at))
        at = last + 1

    header = False  # whether the next gap begins with the header of the region opened last
    for index, region in enumerate(regions):
        while open_regions[-1][0] < max(region.top, at):
            take(open_regions[-1][0], open_regions[-1][1], begins=header)
            header = False
            if len(open_regions) == 1:
                break
            open_regions.pop()
        limit, owner = open_regions[-1]
        parents[index] = owner
        start, end = max(region.top, at), min(region.end, limit)
        if start > end:
            continue
        if start > at:
            take(start - 1, owner, begins=header)
            header = False
        if sizes[end] - sizes[start - 1] > WHOLE:
            open_regions.append((end, index))
            header = True
        else:
            take(end, owner, begins=True)
            header = False
    for end, owner in reversed(open_regions):
        take(end, owner, begins=header)
        header = False
    return pieces


def windows(
    lines: Sequence[str], sizes: Sequence[int], first: int, last: int
) -> list[tuple[int, int]]:
    """Split lines into parts of about SOFT characters, at low indentation and blank lines."""
    found: list[tuple[int, int]] = []
    while sizes[last] - sizes[first - 1] > WHOLE and first < last:
        left = sizes[last] - sizes[first - 1]
        target = left / max(2, round(left / SOFT))
        end = _best_end(lines, sizes, first, last, target)
        found.append((first, end))
        first = end + 1
    found.append((first, last))
    return found


def _best_end(
    lines: Sequence[str], sizes: Sequence[int], first: int, last: int, target: float
) -> int:
    base = sizes[first - 1]
    best, best_cost = 0, (10**9, 10**9, 10**9)
    nearest = first
    for end in range(first, last):
        size = sizes[end] - base
        if size > HARD and end > first:
            break
        nearest = end if size <= target else nearest
        if size < 0.6 * target:
            continue
        if size > 1.4 * target and best:
            break
        cost = _cost(lines, end, abs(size - target))
        if cost < best_cost:
            best, best_cost = end, cost
    return best or nearest


def _cost(lines: Sequence[str], end: int, distance: float) -> tuple[int, int, int]:
    following = lines[end]  # zero-based: the line after `end`
    stripped = following.lstrip()
    if not stripped or stripped.startswith(_CONTINUES):
        return (10**6, 0, int(distance))
    indentation = len(following) - len(stripped)
    return (indentation, 0 if not lines[end - 1].strip() else 1, int(distance))


def _merged(pieces: Sequence[_Piece], sizes: Sequence[int]) -> list[_Piece]:
    merged: list[_Piece] = []
    for piece in pieces:
        if merged and _belong_together(merged[-1], piece, sizes):
            merged[-1].end = piece.end
            merged[-1].begins = merged[-1].begins or piece.begins
        else:
            merged.append(piece)
    return merged


def _belong_together(left: _Piece, right: _Piece, sizes: Sequence[int]) -> bool:
    total = sizes[right.end] - sizes[left.start - 1]
    if left.owner == right.owner and total <= SOFT:
        return True
    left_size, right_size = (
        sizes[left.end] - sizes[left.start - 1],
        sizes[right.end] - sizes[right.start - 1],
    )
    tiny = left_size <= TINY or (right_size <= TINY and not right.begins)
    return tiny and total <= HARD


def _chunks(
    lines: Sequence[str],
    pieces: Sequence[_Piece],
    regions: Sequence[Region],
    parents: Sequence[int],
) -> tuple[Chunk, ...]:
    starts = [region.start for region in regions]
    numbers = list(accumulate((region.definition is not None for region in regions), initial=0))
    chunks = []
    for piece in pieces:
        begun = range(bisect_left(starts, piece.start), bisect_right(starts, piece.end))
        subject = _subject(begun, piece.owner, regions)
        places = [numbers[index] for index in begun if regions[index].definition is not None]
        chunks.append(
            Chunk(
                start=piece.start,
                end=piece.end,
                text="\n".join(lines[piece.start - 1 : piece.end])[:HARD],
                kind="text" if subject == _FILE else regions[subject].kind,
                symbol="" if subject == _FILE else regions[subject].name,
                heading=_heading(piece, regions, parents),
                defines=tuple(places),
            )
        )
    return tuple(chunks)


def _subject(begun: range, owner: int, regions: Sequence[Region]) -> int:
    for index in begun:
        if regions[index].kind not in _MERE_NAMES:
            return index
    if owner != _FILE or not begun:
        return owner
    return begun[0]


def _heading(piece: _Piece, regions: Sequence[Region], parents: Sequence[int]) -> str:
    signatures: list[str] = []
    owner = piece.owner
    while owner != _FILE and len(signatures) < HEADING_DEPTH:
        if regions[owner].start < piece.start:
            signatures.append(regions[owner].signature)
        owner = parents[owner]
    return "\n".join(filter(None, reversed(signatures)))[:HEADING_CHARACTERS]
