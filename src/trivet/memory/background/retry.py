"""Retries of queued work: how long to wait, and batches in which one bad text delays no other."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
# Doublings after which every wait has reached its longest; more would only overflow.
MOST_DOUBLINGS = 20


def retry_after(attempts: int, first: float, longest: float) -> float:
    """Seconds to wait: doubles from `first` to `longest`, with jitter so that many clients do not return at once."""
    seconds = min(longest, first * 2.0 ** min(attempts, MOST_DOUBLINGS))
    return seconds * random.uniform(0.8, 1.2)


def batches(
    items: Sequence[Item], attempts: Callable[[Item], int], size: Callable[[Item], int], most: int
) -> Iterator[Sequence[Item]]:
    """First attempts in batches of at most `most` in size; what failed before alone."""
    batch: list[Item] = []
    total = 0
    for item in (item for item in items if not attempts(item)):
        if batch and total + size(item) > most:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch
    yield from ([item] for item in items if attempts(item))
