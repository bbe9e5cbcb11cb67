"""Rounds of sync: what waits is sent, then what changed is fetched, until both sides are level.

How a laptop speaks to its server over HTTP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

import httpx2
import msgspec

from trivet.client.connection import client_options
from trivet.client.responses import connection_error_text, error_of
from trivet.common.ids import check_id
from trivet.common.threads import prepared_type
from trivet.errors import InvalidInput, StoreError, TrivetError
from trivet.settings import Settings
from trivet.store.records import Bundle
from trivet.store.relational.tables.sync_bundles import memory_at_revision
from trivet.sync.laptop import Laptop
from trivet.sync.messages import (
    NEWEST_PROTOCOL,
    OLDEST_PROTOCOL,
    Acks,
    Answer,
    Embedded,
    Gone,
    Hello,
    Item,
    News,
    Op,
    OtherEpoch,
    Outside,
    Page,
    Place,
    PullRequest,
    Purged,
    PushRequest,
    VectorsRequest,
    VectorsSummary,
    Withheld,
    bundle_fault,
)
from trivet.sync.vectors import MissingVectors, VectorsTaken

# A push is one request and one transaction of the server.
OPS_AT_ONCE = 200
BYTES_AT_ONCE = 2**20
# An answer may come too late to count, or another epoch in between; the same operation is not sent for ever.
MAX_TRIES = 20
# Answers in a row that leave the laptop where it was. A server that numbers a million memories first gives about fifty.
MAX_STALLED = 1_000


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """What a round did. `held_back` says why some operations are still to be sent."""

    sent: int = 0
    received: int = 0
    refused: int = 0
    branched: int = 0
    held_back: str | None = None
    vectors: VectorsTaken = VectorsTaken()


def exchange(laptop: Laptop, server: SyncServer) -> Exchanged:
    """Until nothing moves any longer. A push that the server cannot take keeps no page from coming."""
    done = Exchanged()
    pushing, again, tried = True, False, Counter[str]()
    standing = epochs = 0
    wanted = MissingVectors(laptop.engine)
    while True:
        place, ops = laptop.ask(OPS_AT_ONCE if pushing else 0)
        if ops:
            tried[ops[0].op] += 1
            if tried[ops[0].op] > MAX_TRIES:
                told = f"The server does not acknowledge the {ops[0].kind} of {ops[0].id}."
                done, pushing = msgspec.structs.replace(done, held_back=told), False
                continue
            done, pushing = _push(laptop, server, place, _first_batch(ops), done)
            continue
        answer = server.pull(place)
        counted = laptop.receive(place, answer)
        standing = (
            0
            if counted and isinstance(answer, Page) and answer.place.seq > place.seq
            else standing + 1
        )
        epochs += isinstance(answer, OtherEpoch)
        if standing > MAX_STALLED or epochs > MAX_TRIES:
            raise StoreError(
                "The server's answers lead nowhere. What is here is safe; tell whoever runs the server."
            )
        if isinstance(answer, OtherEpoch):
            pushing = True
        elif isinstance(answer, Page):
            taken = done.vectors + _vectors(wanted, server)
            done = msgspec.structs.replace(
                done, received=done.received + len(answer.items), vectors=taken
            )
            laptop.wake()
            if answer.more:
                continue
            if not pushing and not again:  # what could not be taken before may be taken now
                pushing = again = True
                done = msgspec.structs.replace(done, held_back=None)
            elif not (pushing and laptop.ask(1)[1]):
                return done


def _push(
    laptop: Laptop, server: SyncServer, place: Place, ops: Sequence[Op], done: Exchanged
) -> tuple[Exchanged, bool]:
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


def _vectors(wanted: MissingVectors, server: SyncServer) -> VectorsTaken:
    """Those of all that waits now to be embedded. Without them the laptop embeds itself, so nothing waits for them."""
    done = VectorsTaken()
    while True:
        request, waiting = wanted.next()
        if request is None:
            return done
        try:
            told = server.vectors(request)
        except TrivetError as error:
            return done + VectorsTaken(0, 0, str(error))
        if told is None:
            return done
        done += wanted.take(told, waiting)


def _first_batch(ops: Sequence[Op]) -> Sequence[Op]:
    """As many as fit into one request, and at least one."""
    size = 0
    for place, op in enumerate(ops):
        size += len(msgspec.json.encode(op))
        if size > BYTES_AT_ONCE and place:
            return ops[:place]
    return ops


def check_item(item: Item | None) -> None:
    """That it names memories as Trivet does, and that a memory's history is one."""
    try:
        for id in item.ids if isinstance(item, Outside) else (item.id,) if item is not None else ():
            check_id(id)
    except InvalidInput as error:
        raise StoreError(
            f"The server named a memory as Trivet does not: {error} Nothing was taken in."
        ) from None
    if isinstance(item, Bundle):
        wrong = bundle_fault(item) or _unreadable(item)
        if wrong:
            raise StoreError(f"The server told the memory {item.id} {wrong}. Nothing was taken in.")


def _unreadable(bundle: Bundle) -> str | None:
    try:
        for rev in (bundle.head, *bundle.branches):
            memory_at_revision(bundle.id, bundle.owner, rev)
    except msgspec.ValidationError as error:
        return f"in a way that cannot be read here ({error}). Is its Trivet newer than this one?"
    return None


# A page of the feed, and the operations of a push. Both are one transaction of whoever takes them.
PAGE = 500
# The server waits no longer for news; the answer may take a moment more.
WAIT_SECONDS = 240.0
WAIT_MARGIN = 15.0

# An answer is held in memory. A page has 16 MiB, or one memory: of this size it has ten thousand long revisions.
MAX_ANSWER_BYTES = 256 * 2**20

T = TypeVar("T")
_Line = Bundle | Gone | Purged | Withheld | Outside | Page | OtherEpoch


class SyncServer(Protocol):
    """What a round of sync asks of the other side."""

    def push(self, place: Place, ops: Sequence[Op]) -> Answer: ...
    def pull(self, place: Place) -> Answer: ...
    def vectors(self, request: VectorsRequest) -> Sequence[Embedded] | None: ...


class HttpServer:
    """Nothing is retried here: whoever drives the rounds does, and a repeated operation acts once."""

    def __init__(self, settings: Settings, url: str, key: str) -> None:
        self._settings = msgspec.structs.replace(settings, path=url, key=key)
        self._http = httpx2.Client(**client_options(self._settings))
        self._protocol = NEWEST_PROTOCOL
        self._tells_vectors = False

    def hello(self) -> Hello:
        told = self._decoded(self._ask("GET", "/v1/sync/hello"), Hello)
        if told.newest_protocol < OLDEST_PROTOCOL or told.oldest_protocol > NEWEST_PROTOCOL:
            older = "the server" if told.newest_protocol < OLDEST_PROTOCOL else "this Trivet"
            raise InvalidInput(
                f"The server speaks the protocols {told.oldest_protocol} to {told.newest_protocol} of sync, and this "
                f"Trivet {OLDEST_PROTOCOL} to {NEWEST_PROTOCOL}. Upgrade {older}; until then everything stays here."
            )
        self._protocol = min(NEWEST_PROTOCOL, told.newest_protocol)
        self._tells_vectors = told.vectors
        return told

    def push(self, place: Place, ops: Sequence[Op]) -> Answer:
        body = msgspec.json.encode(
            PushRequest(protocol=self._protocol, place=place, ops=tuple(ops))
        )
        answer: Answer = self._decoded(self._ask("POST", "/v1/sync/push", body), Acks | OtherEpoch)  # type: ignore[arg-type]
        for ack in answer.acks if isinstance(answer, Acks) else ():
            check_item(ack.item)
        return answer

    def pull(self, place: Place) -> Answer:
        body = msgspec.json.encode(PullRequest(protocol=self._protocol, place=place, limit=PAGE))
        lines = [line for line in self._ask("POST", "/v1/sync/pull", body).split(b"\n") if line]
        read: list[Any] = [self._decoded(line, _Line) for line in lines]  # type: ignore[arg-type]
        if read and isinstance(read[-1], OtherEpoch):
            return read[-1]
        if not read or not isinstance(read[-1], Page):
            raise StoreError(
                "The server's answer broke off before its last line. Nothing was taken in; try again."
            )
        items: tuple[Item, ...] = tuple(read[:-1])
        for item in items:
            check_item(item)
        return msgspec.structs.replace(read[-1], items=items)

    def vectors(self, request: VectorsRequest) -> Sequence[Embedded] | None:
        """None where the server has others than the laptop's model would make; it is not asked again then."""
        if not self._tells_vectors:
            return None
        body = msgspec.json.encode(msgspec.structs.replace(request, protocol=self._protocol))
        lines = [line for line in self._ask("POST", "/v1/sync/vectors", body).split(b"\n") if line]
        read: list[Any] = [self._decoded(line, Embedded | VectorsSummary) for line in lines]  # type: ignore[arg-type]
        if not read or not isinstance(read[-1], VectorsSummary) or read[-1].count != len(read) - 1:
            raise StoreError(
                "The server's answer with vectors broke off before its last line. It is asked again."
            )
        self._tells_vectors = read[-1].identity == request.identity
        return read[:-1] if self._tells_vectors else None

    def wait(self, known: str) -> str:
        """Returns when the server has news, or after some minutes; with what to ask next time."""
        timeout = httpx2.Timeout(WAIT_SECONDS + WAIT_MARGIN)
        path = f"/v1/sync/wait?{urlencode({'seconds': f'{WAIT_SECONDS:g}', 'known': known})}"
        return self._decoded(self._ask("GET", path, timeout=timeout), News).known

    def digests(self, scopes: Sequence[str] = ()) -> dict[str, str]:
        query = urlencode([("scope", scope) for scope in scopes])
        return self._decoded(self._ask("GET", f"/v1/sync/digests?{query}"), dict[str, str])

    def close(self) -> None:
        self._http.close()

    def _ask(self, method: str, path: str, body: bytes | None = None, **more: Any) -> bytes:
        headers = {
            "Accept-Encoding": "identity"
        }  # what is packed may be any size once it is unpacked
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            with self._http.stream(method, path, content=body, headers=headers, **more) as response:
                parts = self._read(response)
                if not response.is_success:
                    raise error_of(
                        httpx2.Response(
                            response.status_code, headers=response.headers, content=parts
                        ),
                        self._settings,
                    )
                return parts
        except httpx2.RequestError as error:
            raise StoreError(connection_error_text(error, self._settings.path)) from None

    def _read(self, response: httpx2.Response) -> bytes:
        packed = response.headers.get("content-encoding", "identity") != "identity"
        parts = bytearray()
        for part in () if packed else response.iter_raw():
            parts += part
            if len(parts) > MAX_ANSWER_BYTES:
                break
        if packed or len(parts) > MAX_ANSWER_BYTES:
            said = (
                "packed, though it was asked not to"
                if packed
                else f"over {MAX_ANSWER_BYTES >> 20} MiB long"
            )
            raise StoreError(
                f"{self._settings.path} gave an answer that is {said}. Nothing was taken in."
            )
        return bytes(parts)

    def _decoded(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=prepared_type(kind))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            told = f"{self._settings.path} answered what is not of sync: {error}. Nothing was taken in."
            raise StoreError(told) from None
