"""How a laptop speaks to its server over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

import httpx2
import msgspec

from trivet.client.attempts import loss
from trivet.client.error_response import error_of
from trivet.client.options import options
from trivet.decoding import known_type
from trivet.errors import InvalidInput, StoreError
from trivet.settings import Settings
from trivet.store.sync_records import Bundle
from trivet.sync.check import check_item
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
    VectorsTold,
    Withheld,
)

# A page of the feed, and the operations of a push. Both are one transaction of whoever takes them.
PAGE = 500
# The server waits no longer for news; the answer may take a moment more.
WAIT_SECONDS = 240.0
WAIT_MARGIN = 15.0

# An answer is held in memory. A page has 16 MiB, or one memory: of this size it has ten thousand long revisions.
MOST_BYTES = 256 * 2**20

T = TypeVar("T")
_Line = Bundle | Gone | Purged | Withheld | Outside | Page | OtherEpoch


class Server(Protocol):
    """What a round of sync asks of the other side."""

    def push(self, place: Place, ops: Sequence[Op]) -> Answer: ...
    def pull(self, place: Place) -> Answer: ...
    def vectors(self, request: VectorsRequest) -> Sequence[Embedded] | None: ...


class HttpServer:
    """Nothing is retried here: whoever drives the rounds does, and a repeated operation acts once."""

    def __init__(self, settings: Settings, url: str, key: str) -> None:
        self._settings = msgspec.structs.replace(settings, path=url, key=key)
        self._http = httpx2.Client(**options(self._settings))
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
        body = msgspec.json.encode(PushRequest(protocol=self._protocol, place=place, ops=tuple(ops)))
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
            raise StoreError("The server's answer broke off before its last line. Nothing was taken in; try again.")
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
        read: list[Any] = [self._decoded(line, Embedded | VectorsTold) for line in lines]  # type: ignore[arg-type]
        if not read or not isinstance(read[-1], VectorsTold) or read[-1].count != len(read) - 1:
            raise StoreError("The server's answer with vectors broke off before its last line. It is asked again.")
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
        headers = {"Accept-Encoding": "identity"}  # what is packed may be any size once it is unpacked
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            with self._http.stream(method, path, content=body, headers=headers, **more) as response:
                parts = self._read(response)
                if not response.is_success:
                    raise error_of(
                        httpx2.Response(response.status_code, headers=response.headers, content=parts), self._settings
                    )
                return parts
        except httpx2.RequestError as error:
            raise StoreError(loss(error, self._settings.path)) from None

    def _read(self, response: httpx2.Response) -> bytes:
        packed = response.headers.get("content-encoding", "identity") != "identity"
        parts = bytearray()
        for part in () if packed else response.iter_raw():
            parts += part
            if len(parts) > MOST_BYTES:
                break
        if packed or len(parts) > MOST_BYTES:
            said = "packed, though it was asked not to" if packed else f"over {MOST_BYTES >> 20} MiB long"
            raise StoreError(f"{self._settings.path} gave an answer that is {said}. Nothing was taken in.")
        return bytes(parts)

    def _decoded(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=known_type(kind))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            told = f"{self._settings.path} answered what is not of sync: {error}. Nothing was taken in."
            raise StoreError(told) from None
