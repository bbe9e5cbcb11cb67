"""What a user of a server is told of the time an answer took: whether it was slow, and nothing finer.

A word that some memory holds takes a fraction of a millisecond longer to look up than one that none does. Whoever
shares a store could tell by exact times which words others have stored. The owner, who can read it, sees exact times.
"""

from __future__ import annotations

import math

import msgspec

from trivet.types import Answer

# Far above what a word's presence costs, far below what a person calls slow.
STEP_MS = 50.0


def with_coarse_times(answer: Answer) -> Answer:
    """The whole is rounded up, its parts down: most of them become 0."""
    legs = tuple(msgspec.structs.replace(leg, took_ms=_down(leg.took_ms)) for leg in answer.health.legs)
    return msgspec.structs.replace(
        answer,
        took_ms=math.ceil(answer.took_ms / STEP_MS) * STEP_MS,
        stages_ms={name: _down(took) for name, took in answer.stages_ms.items()},
        health=msgspec.structs.replace(answer.health, legs=legs),
    )


def _down(milliseconds: float) -> float:
    return milliseconds // STEP_MS * STEP_MS
