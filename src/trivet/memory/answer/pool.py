"""The candidates of a recall on their way from fusion to choice."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.memory.answer.evidence import Evidence
from trivet.types import Fused, LegHealth


class Pool(msgspec.Struct, frozen=True):
    """In the order that counts so far, with what is known of them by each question that was asked, and how all went.

    `asked` are the questions besides the query.
    """

    fused: tuple[Fused, ...]
    evidence: tuple[Evidence, ...]
    health: Sequence[LegHealth] = ()
    asked: tuple[str, ...] = ()
