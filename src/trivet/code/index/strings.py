"""Many texts in two arrays, which a file can hold and map: a Python string is made only of one that is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Strings(NamedTuple):
    """`ends[n]` is where text n ends in the bytes, and text n + 1 begins."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def at(self, number: int) -> str:
        start = int(self.ends[number - 1]) if number else 0
        return self.data[start : int(self.ends[number])].tobytes().decode()

    def __len__(self) -> int:
        return len(self.ends)


def strings(texts: Iterable[str]) -> Strings:
    encoded = [text.encode(errors="replace") for text in texts]
    ends = np.cumsum([len(one) for one in encoded], dtype=np.int64)
    return Strings(np.frombuffer(b"".join(encoded), np.uint8), ends)
