"""A verb declared outside the package; importing this file registers it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from trivet.contract import Request, Route, Tool, verb
from trivet.memory.engine import Engine


class Echoed(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    memories: int


def echo(engine: Engine, request: EchoRequest) -> Echoed:
    held = engine.store.memories.stats().memories
    return Echoed(text=" ".join([request.text] * request.times), memories=held.get("active", 0))


@verb(
    "echo",
    echo,
    needs="read",
    routes=(Route("GET", "/v1/echo/{text}"),),
    tool=Tool("memory_echo", "Echo", "Use it to hear yourself."),
    example="trivet echo hello --times 2",
)
class EchoRequest(Request[Echoed], frozen=True, kw_only=True):
    """Say a text again, and count the memories."""

    text: Annotated[str, Meta(min_length=1, max_length=20, description="What to say.")]
    times: Annotated[int, Meta(ge=1, le=3, description="How often to say it.")] = 1
