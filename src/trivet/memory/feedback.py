"""What was said of a memory that came, and how often it was shown. Recall looks at neither."""

from __future__ import annotations

from trivet.contract import FeedbackRequest, UsageRequest
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.types import Usage


def feedback(engine: Engine, request: FeedbackRequest) -> Usage:
    memory = engine.store.memories.get(check_id(request.id))
    query = " ".join(engine.guard.without_secrets(request.query or "").split())
    engine.store.usage.judge(memory.id, query, request.verdict)
    return engine.store.usage.of(memory.id)


def usage(engine: Engine, request: UsageRequest) -> Usage:
    """With what this process has shown and not written down yet."""
    memory = engine.store.memories.get(check_id(request.id))
    engine.tally.write_down()
    return engine.store.usage.of(memory.id)
