"""Rounds of sync over HTTP: send what waits and fetch changes until both sides are level."""

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

# Limits of a push, one request and one transaction.
OPS_AT_ONCE = 200
BYTES_AT_ONCE = 2**20
# Maximum sends of an operation: an answer may come too late or in another epoch.
MAX_TRIES = 20
# Maximum answers in a row without progress; numbering a million memories first takes about fifty.
MAX_STALLED = 1_000


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a round; `held_back` says why some operations still wait."""

    sent: int = 0
    received: int = 0
    refused: int = 0
    branched: int = 0
    held_back: str | None = None
    vectors: VectorsTaken = VectorsTaken()


def exchange(laptop: Laptop, server: SyncServer) -> Exchanged:
    """Push and pull until nothing changes; a rejected push does not stop the pull."""
    done = Exchanged()
    pushing, again, tried = True, False, Counter[str]()
    standing = epochs = 0
    wanted = MissingVectors(laptop.engine)
    while True:
        place, ops = laptop.ask(OPS_AT_ONCE if pushing else 0)
        if ops:
            tried[ops[0].op] += 1
            if tried[ops[0].op] > MAX_TRIES:
                reason = f"The server does not acknowledge the {ops[0].kind} of {ops[0].id}."
                done, pushing = msgspec.structs.replace(done, held_back=reason), False
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
                "The server's answers make no progress. Local data is safe; inform the server's "
                "administrator."
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
            if not pushing and not again:  # what the server rejected before may work now
                pushing = again = True
                done = msgspec.structs.replace(done, held_back=None)
            elif not (pushing and laptop.ask(1)[1]):
                return done


def _push(
    laptop: Laptop, server: SyncServer, place: Place, ops: Sequence[Op], done: Exchanged
) -> tuple[Exchanged, bool]:
    """Return the result and whether to go on pushing."""
    try:
        answer = server.push(place, ops)
    except StoreError:  # unreachable or failing: the round ends
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
    done = VectorsTaken()
    while True:
        request, waiting = wanted.next()
        if request is None:
            return done
        try:
            received = server.vectors(request)
        except TrivetError as error:
            return done + VectorsTaken(0, 0, str(error))
        if received is None:
            return done
        done += wanted.take(received, waiting)


def _first_batch(ops: Sequence[Op]) -> Sequence[Op]:
    size = 0
    for place, op in enumerate(ops):
        size += len(msgspec.json.encode(op))
        if size > BYTES_AT_ONCE and place:
            return ops[:place]
    return ops


def check_item(item: Item | None) -> None:
    try:
        for id in item.ids if isinstance(item, Outside) else (item.id,) if item is not None else ():
            check_id(id)
    except InvalidInput as error:
        raise StoreError(f"The server sent a malformed id: {error} Nothing was written.") from None
    if isinstance(item, Bundle):
        wrong = bundle_fault(item) or _unreadable(item)
        if wrong:
            raise StoreError(
                f"The server sent the memory {item.id}, but it {wrong}. Nothing was written."
            )


def _unreadable(bundle: Bundle) -> str | None:
    try:
        for rev in (bundle.head, *bundle.branches):
            memory_at_revision(bundle.id, bundle.owner, rev)
    except msgspec.ValidationError as error:
        return f"cannot be read here ({error}); the server's Trivet may be newer"
    return None


# Items per page, which the laptop stores in one transaction.
PAGE = 500
# Seconds to wait for news, and the client's extra time.
WAIT_SECONDS = 240.0
WAIT_MARGIN = 15.0

# Answers are held in memory. A page has 16 MiB, or one memory; this size is ten thousand long
# revisions.
MAX_ANSWER_BYTES = 256 * 2**20

T = TypeVar("T")
_Line = Bundle | Gone | Purged | Withheld | Outside | Page | OtherEpoch


class SyncServer(Protocol):
    def push(self, place: Place, ops: Sequence[Op]) -> Answer: ...
    def pull(self, place: Place) -> Answer: ...
    def vectors(self, request: VectorsRequest) -> Sequence[Embedded] | None: ...


class HttpServer:
    """A server over HTTP. It never retries; a repeated operation acts once."""

    def __init__(self, settings: Settings, url: str, key: str) -> None:
        self._settings = msgspec.structs.replace(settings, path=url, key=key)
        self._http = httpx2.Client(**client_options(self._settings))
        self._protocol = NEWEST_PROTOCOL
        self._sends_vectors = False

    def hello(self) -> Hello:
        hello = self._decoded(self._ask("GET", "/v1/sync/hello"), Hello)
        if hello.newest_protocol < OLDEST_PROTOCOL or hello.oldest_protocol > NEWEST_PROTOCOL:
            older = "the server" if hello.newest_protocol < OLDEST_PROTOCOL else "this Trivet"
            raise InvalidInput(
                f"The server supports versions {hello.oldest_protocol} to {hello.newest_protocol} "
                f"of the sync protocol, this Trivet {OLDEST_PROTOCOL} to {NEWEST_PROTOCOL}. "
                f"Upgrade {older}; until then everything stays here."
            )
        self._protocol = min(NEWEST_PROTOCOL, hello.newest_protocol)
        self._sends_vectors = hello.vectors
        return hello

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
                "The server's answer ended before its last line. Nothing was written; try again."
            )
        items: tuple[Item, ...] = tuple(read[:-1])
        for item in items:
            check_item(item)
        return msgspec.structs.replace(read[-1], items=items)

    def vectors(self, request: VectorsRequest) -> Sequence[Embedded] | None:
        """Return the vectors, or None if the server's model differs."""
        if not self._sends_vectors:
            return None
        body = msgspec.json.encode(msgspec.structs.replace(request, protocol=self._protocol))
        lines = [line for line in self._ask("POST", "/v1/sync/vectors", body).split(b"\n") if line]
        read: list[Any] = [self._decoded(line, Embedded | VectorsSummary) for line in lines]  # type: ignore[arg-type]
        if not read or not isinstance(read[-1], VectorsSummary) or read[-1].count != len(read) - 1:
            raise StoreError(
                "The server's answer with vectors ended before its last line. The next exchange "
                "asks again."
            )
        self._sends_vectors = read[-1].identity == request.identity
        return read[:-1] if self._sends_vectors else None

    def wait(self, known: str) -> str:
        """Wait some minutes for news; return the argument of the next wait."""
        timeout = httpx2.Timeout(WAIT_SECONDS + WAIT_MARGIN)
        path = f"/v1/sync/wait?{urlencode({'seconds': f'{WAIT_SECONDS:g}', 'known': known})}"
        return self._decoded(self._ask("GET", path, timeout=timeout), News).known

    def digests(self, scopes: Sequence[str] = ()) -> dict[str, str]:
        query = urlencode([("scope", scope) for scope in scopes])
        return self._decoded(self._ask("GET", f"/v1/sync/digests?{query}"), dict[str, str])

    def close(self) -> None:
        self._http.close()

    def _ask(self, method: str, path: str, body: bytes | None = None, **more: Any) -> bytes:
        # A compressed answer could expand beyond the limit.
        headers = {"Accept-Encoding": "identity"}
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
        compressed = response.headers.get("content-encoding", "identity") != "identity"
        parts = bytearray()
        for part in () if compressed else response.iter_raw():
            parts += part
            if len(parts) > MAX_ANSWER_BYTES:
                break
        if compressed or len(parts) > MAX_ANSWER_BYTES:
            fault = (
                "compressed, although the request forbids it"
                if compressed
                else f"longer than {MAX_ANSWER_BYTES >> 20} MiB"
            )
            raise StoreError(
                f"{self._settings.path} sent an answer that is {fault}. Nothing was written."
            )
        return bytes(parts)

    def _decoded(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=prepared_type(kind))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise StoreError(
                f"{self._settings.path} sent an invalid sync answer: {error}. Nothing was written."
            ) from None
