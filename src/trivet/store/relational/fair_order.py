"""In which order waiting memories are embedded: by turns between their owners, and short texts before long ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec


class Waiting(msgspec.Struct, frozen=True):
    """A memory that waits. `size` is the length of its text, which is what embedding it costs."""

    key: int
    owner: str
    size: int


def fair_order(waiting: Iterable[Waiting]) -> list[Waiting]:
    """Each owner's shortest first; between owners, first whose texts up to this one are the least work together.

    So nobody waits for the whole of another's import, and a note is not held up by a book.
    """
    texts_of: defaultdict[str, list[Waiting]] = defaultdict(list)
    for one in sorted(waiting, key=lambda one: (one.size, one.key)):
        texts_of[one.owner].append(one)
    places: list[tuple[int, int, Waiting]] = []
    for texts in texts_of.values():
        work = 0
        for one in texts:
            work += one.size
            places.append((work, one.key, one))
    return [one for _, _, one in sorted(places, key=lambda place: place[:2])]


def shared_out(ordered: Sequence[Waiting], limit: int, most_characters: int | None) -> list[Waiting]:
    """The first of them, at most `limit` and so much text, and last the one that has waited longest.

    With little text at a time, what comes next has its turn soon. With the oldest, nothing is overtaken for ever.
    """
    chosen: list[Waiting] = []
    left = most_characters
    for one in ordered[:limit]:
        if left is not None and chosen and one.size > left:
            break
        chosen.append(one)
        left = None if left is None else left - one.size
    oldest = min(ordered, key=lambda one: one.key, default=None)
    if oldest is None or oldest in chosen:
        return chosen
    return [*chosen[: limit - 1], oldest]
