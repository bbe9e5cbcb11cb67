"""Rounds of sync: what waits is sent, then what changed is fetched, until both sides are level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from trivet.errors import StoreError, TrivetError
from trivet.sync.client import Server
from trivet.sync.laptop import Laptop
from trivet.sync.messages import Acks, Op, OtherEpoch, Page, Place
from trivet.sync.vectors import Taken, Wanted

# A push is one request and one transaction of the server.
OPS_AT_ONCE = 200
BYTES_AT_ONCE = 2**20
# An answer may come too late to count, or another epoch in between; the same operation is not sent for ever.
MOST_TRIES = 20
# Answers in a row that leave the laptop where it was. A server that numbers a million memories first gives about fifty.
MOST_STANDING = 1_000


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """What a round did. `held_back` says why some operations are still to be sent."""

    sent: int = 0
    received: int = 0
    refused: int = 0
    branched: int = 0
    held_back: str | None = None
    vectors: Taken = Taken()


def exchange(laptop: Laptop, server: Server) -> Exchanged:
    """Until nothing moves any longer. A push that the server cannot take keeps no page from coming."""
    done = Exchanged()
    pushing, again, tried = True, False, Counter[str]()
    standing = epochs = 0
    wanted = Wanted(laptop.engine)
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
        counted = laptop.receive(place, answer)
        standing = 0 if counted and isinstance(answer, Page) and answer.place.seq > place.seq else standing + 1
        epochs += isinstance(answer, OtherEpoch)
        if standing > MOST_STANDING or epochs > MOST_TRIES:
            raise StoreError("The server's answers lead nowhere. What is here is safe; tell whoever runs the server.")
        if isinstance(answer, OtherEpoch):
            pushing = True
        elif isinstance(answer, Page):
            taken = done.vectors + _vectors(wanted, server)
            done = msgspec.structs.replace(done, received=done.received + len(answer.items), vectors=taken)
            laptop.wake()
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
        vectors=done.vectors,
    )
    return done, not later


def _vectors(wanted: Wanted, server: Server) -> Taken:
    """Those of all that waits now to be embedded. Without them the laptop embeds itself, so nothing waits for them."""
    done = Taken()
    while True:
        request, waiting = wanted.next()
        if request is None:
            return done
        try:
            told = server.vectors(request)
        except TrivetError as error:
            return done + Taken(0, 0, str(error))
        if told is None:
            return done
        done += wanted.take(told, waiting)


def _fitting(ops: Sequence[Op]) -> Sequence[Op]:
    """As many as fit into one request, and at least one."""
    size = 0
    for place, op in enumerate(ops):
        size += len(msgspec.json.encode(op))
        if size > BYTES_AT_ONCE and place:
            return ops[:place]
    return ops
