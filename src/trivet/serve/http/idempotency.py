"""Idempotency-Key: a client that lost the answer to a write sends it again; it acts once and is answered alike.

What is kept lies in the tenant's own store, so it outlives a restart and holds for all processes on one database. It is
sealed with a key made from the API key and the Idempotency-Key, neither of which is stored: an answer may quote
memories, and must not outlive them in the clear when they are purged.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request

from trivet.errors import InvalidInput, StoreError
from trivet.memory.repeatable import Repeatable
from trivet.serve.http.endpoint import Reply, ServerContext
from trivet.serve.http.errors import Malformed, StillRunning
from trivet.trivet import Trivet

if TYPE_CHECKING:
    from trivet.store.records import Kept
    from trivet.store.relational.idempotency import Idempotency

logger = logging.getLogger("trivet.serve.http")

HEADER = "idempotency-key"
KEY = re.compile(r"[!-~]{1,200}")
# After so many times the time that a request may take, the process that worked on it is taken for dead.
LEASE_TIMES = 2


class IdempotentRequest(Repeatable):
    """A request that must act once."""

    def sealed(self, reply: Reply) -> bytes:
        return self.seal(msgspec.msgpack.encode(reply))

    def opened(self, answer: bytes) -> Reply:
        return msgspec.msgpack.decode(self.open(answer), type=Reply)


def idempotent_request(request: Request, body: bytes) -> IdempotentRequest | None:
    """None where the caller did not ask for it."""
    given = request.headers.getlist(HEADER)
    if not given:
        return None
    if len(given) > 1 or not KEY.fullmatch(given[0]):
        raise Malformed("Idempotency-Key: one text of 1 to 200 printable ASCII characters without spaces is expected.")
    target = request.scope["raw_path"] + b"?" + request.scope["query_string"]
    condition = request.headers.get("if-match", "").encode()
    asked = b"\n".join((request.method.encode(), target, condition, hashlib.sha256(body).digest()))
    return IdempotentRequest(request.state.secret, given[0], asked)


def act_once(
    context: ServerContext,
    memory: Trivet,
    repeatable: IdempotentRequest | None,
    act: Callable[[], Reply],
    atomic: bool = False,
) -> Reply:
    """`atomic`: the answer is kept in the transaction of the act, so a server that dies leaves both or neither."""
    if repeatable is None:
        return act()
    once = memory.engine.store.idempotency
    lease = LEASE_TIMES * context.settings.server_request_seconds
    if atomic:
        kept = once.act(repeatable.name, repeatable.request, lambda: repeatable.sealed(act()), lease)
        memory.engine.worker.wake()  # the act itself did before its work could be seen
        return _replayed(repeatable, kept)
    begun = once.begin(repeatable.name, repeatable.request, lease)
    return _act(once, repeatable, act) if begun is None else _replayed(repeatable, begun)


def _replayed(repeatable: IdempotentRequest, kept: Kept) -> Reply:
    if not hmac.compare_digest(kept.request, repeatable.request):
        raise InvalidInput("Idempotency-Key: it came with another request before. Nothing was done; make a new one.")
    if kept.answer is None:
        raise StillRunning("The same request is being worked on. Ask again in a moment with the same Idempotency-Key.")
    return msgspec.structs.replace(repeatable.opened(kept.answer), replayed=not kept.acted)


def _act(once: Idempotency, repeatable: IdempotentRequest, act: Callable[[], Reply]) -> Reply:
    try:
        reply = act()
    except BaseException:
        once.give_up(repeatable.name)
        raise
    try:
        once.finish(repeatable.name, repeatable.sealed(reply))
    except StoreError as error:  # it is done all the same, and the caller should hear so
        logger.warning("An answer could not be kept for a repeated request: %s", error)
    return reply
