"""The handshake with an MCP client, answered before the MCP library is loaded.

The library takes over a second to import, and agents do not wait for tools.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO, Literal

import msgspec

from trivet.errors import TrivetError
from trivet.serve.mcp.listings import (
    REVEAL_VARIABLE,
    Handshake,
    ListAnswers,
    Offer,
    introduction,
    listings,
)
from trivet.serve.mcp.tools import agent_tools
from trivet.settings import load_settings
from trivet.settings.locations import is_server

# Identical up to the first call. For other versions the library answers.
VERSIONS = frozenset(("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"))
STANDARD_INPUT, STANDARD_OUTPUT = 0, 1
ToolSet = Literal["trivet", "reference-memory"]
_HELLO = "initialize"
_READY = "notifications/initialized"


class ServerVariant(msgspec.Struct, frozen=True):
    introduction: Callable[[str], dict[str, Any]]
    answers: ListAnswers
    home: str
    serve: Callable[[BinaryIO, Handshake], None]


def run(path: str | None = None, form: ToolSet = "trivet") -> None:
    """Serve the store at `path` or the configured one, until input ends or a signal comes."""
    face = _reference_variant(path) if form == "reference-memory" else _trivet_variant(path)
    loading = threading.Thread(target=import_module, args=(face.home,), name="trivet-loading")
    loading.start()
    # Never closed: a thread may read it when a signal ends the process.
    stream = open(STANDARD_INPUT, "rb", closefd=False)  # noqa: SIM115
    try:
        greeted = answer_handshake(stream, _write, face.answers, face.introduction)
    except (BrokenPipeError, KeyboardInterrupt):  # client disconnected, or Ctrl-C
        return
    finally:
        loading.join()  # modules cannot load while the process exits
    if greeted is not None:
        face.serve(stream, greeted)


def _trivet_variant(path: str | None) -> ServerVariant:
    offer = load_offer(path)

    def serve(stream: BinaryIO, greeted: Handshake) -> None:
        from trivet.serve.mcp.server import serve

        serve(path, offer, stream, greeted)

    answers = listings(agent_tools(offer.reveal, offer.categories), offer.code)
    return ServerVariant(introduction, answers, "trivet.serve.mcp.server", serve)


def _reference_variant(path: str | None) -> ServerVariant:
    from trivet.serve.mcp import reference_tools as tools

    def serve(stream: BinaryIO, greeted: Handshake) -> None:
        from trivet.serve.mcp.reference_server import serve

        serve(path, stream, greeted)

    return ServerVariant(
        tools.introduction, tools.listings(), "trivet.serve.mcp.reference_server", serve
    )


def answer_handshake(
    stream: BinaryIO,
    write: Callable[[bytes], None],
    answers: ListAnswers,
    introduction: Callable[[str], dict[str, Any]] = introduction,
) -> Handshake | None:
    """Answer what needs no store; return None if the input ends."""
    heard: list[bytes] = []
    hello: Any = None
    while line := stream.readline():
        message = _message(line)
        method, version = message.get("method"), _version(message)
        if method == _HELLO and not heard and version is not None:
            heard, hello = [line], message.get("id")
            write(_answer(hello, introduction(version)))
        elif method == _READY and heard:
            heard.append(line)
        elif (
            heard
            and isinstance(method, str)
            and method in answers
            and "id" in message
            and not _has_parameters(message)
        ):
            write(_answer(message["id"], answers[method]))
        else:
            return Handshake((*heard, line), hello)
    return None


def load_offer(path: str | None) -> Offer:
    """Return the offer, without categories where a server has its own."""
    reveal = os.environ.get(REVEAL_VARIABLE) == "1"
    try:
        settings = load_settings(path=path)
    except TrivetError:
        return Offer(reveal=reveal)
    return Offer(reveal, () if is_server(settings.path) else settings.categories, settings.code)


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else {}


def _version(message: dict[str, Any]) -> str | None:
    wanted = message.get("params")
    if not isinstance(wanted, dict) or not isinstance(message.get("id"), int | str):
        return None
    whole = isinstance(wanted.get("capabilities"), dict) and isinstance(
        wanted.get("clientInfo"), dict
    )
    version = wanted.get("protocolVersion")
    return version if whole and isinstance(version, str) and version in VERSIONS else None


def _has_parameters(message: dict[str, Any]) -> bool:
    return bool(message.get("params")) or not isinstance(message["id"], int | str)


def _answer(id: Any, result: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "result": result}) + b"\n"


def _write(data: bytes) -> None:
    """Bypass Python's stream, which complains at exit when the reader has gone."""
    while data:
        data = data[os.write(STANDARD_OUTPUT, data) :]
