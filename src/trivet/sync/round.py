"""Rounds of sync: what waits is sent, then what changed is fetched, until both sides are level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from trivet.errors import StoreError, TrivetError
from trivet.sync.client import Server
from trivet.sync.laptop import Laptop
from trivet.sync.messages import Acks, Op, OtherEpoch, Page, Place

# A push is one request and one transaction of the server.
OPS_AT_ONCE = 200
BYTES_AT_ONCE = 2**20
# An answer may come too late to count, or another epoch in between; the same operation is not sent for ever.
MOST_TRIES = 20


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """What a round did. `held_back` says why some operations are still to be sent."""

    sent: int = 0
    received: int = 0
    refused: int = 0
    branched: int = 0
    held_back: str | None = None


def exchange(laptop: Laptop, server: Server) -> Exchanged:
    """Until nothing moves any longer. A push that the server cannot take keeps no page from coming."""
    done = Exchanged()
    pushing, again, tried = True, False, Counter[str]()
    while True:
        place, ops = laptop.ask(OPS_AT_ONCE if pushing else 0)
        if ops:
            tried[ops[0].op] += 1
            if tried[ops[0].op] > MOST_TRIES:
                told = f"The server does not acknowledge the {ops[0].kind} of {ops[0].id}."
                done, pushing = msgspec.structs.replace(done, held_back=told), False
                continue
            done, pushing = _pushed(laptop, server, place, _fitting(ops), done)
            continue
        answer = server.pull(place)
        laptop.receive(place, answer)
        if isinstance(answer, OtherEpoch):
            pushing = True
        elif isinstance(answer, Page):
            done = msgspec.structs.replace(done, received=done.received + len(answer.items))
            if answer.more:
                continue
            if not pushing and not again:  # what could not be taken before may be taken now
                pushing = again = True
                done = msgspec.structs.replace(done, held_back=None)
            elif not (pushing and laptop.ask(1)[1]):
                return done


def _pushed(laptop: Laptop, server: Server, place: Place, ops: Sequence[Op], done: Exchanged) -> tuple[Exchanged, bool]:
    """Whether to go on pushing."""
    try:
        answer = server.push(place, ops)
    except StoreError:  # not reached, or not able to: the round is over
        raise
    except TrivetError as error:
        return msgspec.structs.replace(done, held_back=str(error)), False
    laptop.receive(place, answer)
    if not isinstance(answer, Acks):
        return done, True
    results = [ack.result for ack in answer.acks]
    later = [ack.reason for ack in answer.acks if ack.result == "later"]
    done = Exchanged(
        sent=done.sent + len(results) - len(later),
        received=done.received,
        refused=done.refused + results.count("refused"),
        branched=done.branched + results.count("branched"),
        held_back=later[0] if later else done.held_back,
    )
    return done, not later


def _fitting(ops: Sequence[Op]) -> Sequence[Op]:
    """As many as fit into one request, and at least one."""
    size = 0
    for place, op in enumerate(ops):
        size += len(msgspec.json.encode(op))
        if size > BYTES_AT_ONCE and place:
            return ops[:place]
    return ops
