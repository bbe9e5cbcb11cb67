"""Serve one product to the harness by lines of JSON on stdin and stdout.

A driver runs in the product's environment without Trivet, so this file uses only the standard
library. Each request line gets an answer line, with the seconds the product itself took:

{"do": "open", "folder": "...", "dimension": 384, "given": true}     {"seconds": 0.4}
{"do": "add", "documents": [{"id": "1", "text": "...", "vector": "..."}]}
{"do": "finish"}     steps the product's manual recommends after many writes, such as indexing
{"do": "settle"}     waits for background work
{"do": "search", "text": "...", "vector": "...", "count": 10}  {"ids": ["1"], "seconds": 0.002}
{"do": "held"}       {"ids": [...]}, every document that the product has
{"do": "close"}

A vector is base64 of single floats. A product that embeds by itself gets `vectors_of` as its model.
It looks up given texts and asks the harness for any other, such as a part of a long one: {"embed":
["..."]} is answered by {"vectors": ["..."]}.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import sys
import threading
import time
import traceback
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

Vector = list[float]


@dataclass(frozen=True)
class Document:
    id: str
    text: str
    vector: Vector


class Peer(Protocol):
    def open(self, folder: Path, dimension: int, given: bool) -> None:
        """Open or create the store. `given`: use our vectors, not the product's own model."""

    def add(self, documents: Sequence[Document]) -> None:
        """Return once the product reports the documents as stored."""

    def finish(self) -> None:
        """Return once everything added can be found."""

    def search(self, text: str, vector: Vector, count: int) -> list[str]:
        """Return document ids, best first."""

    def held(self) -> list[str]: ...

    def close(self) -> None: ...


_known: dict[str, Vector] = {}
_requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
_replies: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
_asking = threading.Lock()
_out: IO[str]


def vectors_of(texts: Sequence[str]) -> list[Vector]:
    unknown = [text for text in dict.fromkeys(texts) if text not in _known]
    if unknown:
        with _asking:
            _say({"embed": unknown})
            found = _replies.get()["vectors"]
        _known.update(zip(unknown, map(unpacked, found), strict=True))
    return [_known[text] for text in texts]


def unpacked(text: str) -> Vector:
    numbers = array("f")
    numbers.frombytes(base64.b64decode(text))
    return numbers.tolist()


def serve(peer: Peer) -> None:
    """Answer until the harness closes stdin. The product's output goes to stderr."""
    global _out
    _out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_read, daemon=True).start()
    while (request := _requests.get()) is not None:
        try:
            _say(_answer(peer, request))
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            _say({"error": f"{type(error).__name__}: {error}"})


def _read() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        (_replies if "vectors" in message else _requests).put(message)
    _requests.put(None)


def _say(message: dict[str, Any]) -> None:
    _out.write(json.dumps(message) + "\n")
    _out.flush()


def _answer(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    given = _arguments(request)
    began = time.perf_counter()
    found = (
        None
        if request["do"] == "settle" and not hasattr(peer, "settle")
        else getattr(peer, request["do"])(*given)
    )
    seconds = time.perf_counter() - began
    return {"seconds": seconds} if found is None else {"seconds": seconds, "ids": found}


def _arguments(request: dict[str, Any]) -> tuple[Any, ...]:
    """Decode here, outside the product's time."""
    match request["do"]:
        case "open":
            return Path(request["folder"]), request["dimension"], request["given"]
        case "add":
            return ([_document(one) for one in request["documents"]],)
        case "search":
            vector = _learnt(request["text"], request["vector"])
            return request["text"], vector, request["count"]
    return ()


def _document(fields: dict[str, str]) -> Document:
    return Document(fields["id"], fields["text"], _learnt(fields["text"], fields["vector"]))


def _learnt(text: str, vector: str) -> Vector:
    return _known.setdefault(text, unpacked(vector))
