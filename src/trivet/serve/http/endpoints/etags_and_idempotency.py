"""A memory's ETag: its revision, which changes by every edit, and a digest of what is shown of it.

Idempotency-Key: a client that lost the answer to a write sends it again; it acts once and is answered alike.

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
from trivet.memory.perform import IdempotencyRecord
from trivet.serve.http.endpoints.endpoint import Reply, ServerContext
from trivet.serve.http.errors import Malformed, OutOfDate, StillRunning
from trivet.trivet import Trivet
from trivet.types import Memory

if TYPE_CHECKING:
    from trivet.store.records import StoredAnswer
    from trivet.store.relational.tables.ledgers import Idempotency


_TAG = re.compile(r'(?:W/)?"(\d{1,10})(?:-[0-9a-f]*)?"')
DIGEST_BYTES = 6


def etag(memory: Memory, body: bytes) -> str:
    """The digest tells apart what has one revision: masked and revealed, or superseded by a link."""
    return f'"{memory.revision}-{hashlib.blake2b(body, digest_size=DIGEST_BYTES).hexdigest()}"'


def is_known(request: Request, tag: str) -> bool:
    """Whether the caller has this already, so that 304 is all it needs."""
    given = request.headers.get("if-none-match", "")
    return given == "*" or tag in [one.strip().removeprefix("W/") for one in given.split(",")]


def expected_revisions(request: Request) -> frozenset[int] | None:
    """Those of If-Match; None where any will do."""
    given = request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = [_TAG.fullmatch(one.strip()) for one in given.split(",")]
    if not all(found):
        raise InvalidInput('If-Match: give the ETag of the memory as it came, such as "3-0f6c1a2b9d10".')
    return frozenset(int(one[1]) for one in found if one)


def check_unchanged(memory: Trivet, id: str, expected: frozenset[int] | None) -> int | None:
    """The revision that was expected and is there, or nothing where none was expected."""
    if expected is None:
        return None
    current = memory.get(id).revision
    if current not in expected:
        raise OutOfDate(f"The memory is at revision {current} by now. Nothing was done; read it again.")
    return current


logger = logging.getLogger("trivet.serve.http")

IDEMPOTENCY_HEADER = "idempotency-key"
IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,200}")
# After so many times the time that a request may take, the process that worked on it is taken for dead.
LEASE_FACTOR = 2


class IdempotentRequest(IdempotencyRecord):
    """A request that must act once."""

    def sealed(self, reply: Reply) -> bytes:
        return self.seal(msgspec.msgpack.encode(reply))

    def opened(self, answer: bytes) -> Reply:
        return msgspec.msgpack.decode(self.open(answer), type=Reply)


def idempotent_request(request: Request, body: bytes) -> IdempotentRequest | None:
    """None where the caller did not ask for it."""
    given = request.headers.getlist(IDEMPOTENCY_HEADER)
    if not given:
        return None
    if len(given) > 1 or not IDEMPOTENCY_KEY.fullmatch(given[0]):
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
    lease = LEASE_FACTOR * context.settings.server_request_seconds
    if atomic:
        kept = once.act(repeatable.name, repeatable.request, lambda: repeatable.sealed(act()), lease)
        memory.engine.worker.wake()  # the act itself did before its work could be seen
        return _replayed(repeatable, kept)
    begun = once.begin(repeatable.name, repeatable.request, lease)
    return _act(once, repeatable, act) if begun is None else _replayed(repeatable, begun)


def _replayed(repeatable: IdempotentRequest, kept: StoredAnswer) -> Reply:
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
