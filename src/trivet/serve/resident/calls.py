"""A request as a message to the resident process, and its result or error as the answer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trivet import errors
from trivet.contract import VERBS, BudgetsRequest, DoctorRequest, DrainRequest, Remember, Request, Verb, verb_of
from trivet.decoding import known_type
from trivet.errors import StoreError, TrivetError
from trivet.ids import new_id
from trivet.settings import Settings, config_path
from trivet.trivet import Trivet

CALL = b"call"
OK = b"ok"
ERROR = b"error"
ALONE = b"alone"
OLD = b"version"
# Keys of services, and the way to them. They are compared, never kept.
_SERVICE = re.compile(r"\w*(?:_API_KEY|_TOKEN|_PROXY)", re.IGNORECASE)


CHECKS = (DoctorRequest, BudgetsRequest)


class Call(msgspec.Struct, frozen=True):
    """One call: a verb's request, which the client has checked, and the settings and environment it was made in."""

    settings: Settings
    surroundings: Mapping[str, str]
    verb: str
    request: msgspec.Raw = msgspec.Raw(b"{}")
    once: str = ""  # a key, by which a write that is asked for again acts once


class Failed(msgspec.Struct, frozen=True):
    kind: str
    message: str


def can_be_asked(verb: Verb) -> bool:
    """What else needs the store itself. `drain` is what the command line asks for after a write.

    A check looks at the store as a process that opens it now finds it: a resident one may hold a replaced file.
    """
    return (verb.needs != "store" and verb.request not in CHECKS) or verb.request is DrainRequest


def repeatable(request: Request[Any]) -> Request[Any]:
    """With the id made here, a write that is repeated without the process can never become two memories."""
    if isinstance(request, Remember) and request.id is None:
        return msgspec.structs.replace(request, id=new_id())
    return request


def call_of(settings: Settings, request: Request[Any]) -> Call:
    encoded = b"{}" if isinstance(request, DrainRequest) else msgspec.json.encode(request)
    verb = verb_of(request)
    once = new_id() if verb.atomic else ""
    return Call(settings, surroundings(settings, os.environ), verb.name, msgspec.Raw(encoded), once)


def perform(memory: Trivet, call: Call) -> bytes:
    """Performs the verb, and gives the result as it is sent."""
    if VERBS[call.verb].request is DrainRequest:
        from trivet.memory.maintenance import read_now  # not for the client, whose start it would slow

        engine = memory.engine
        return msgspec.json.encode(engine.worker.drain(None) if engine.embedding.local else read_now(engine))
    request = msgspec.json.decode(call.request, type=known_type(VERBS[call.verb].request))
    if not call.once:
        return msgspec.json.encode(memory.perform(request))
    return _perform_once(memory, call, lambda: msgspec.json.encode(memory.perform(request)))


def _perform_once(memory: Trivet, call: Call, act: Callable[[], bytes]) -> bytes:
    """The answer is kept in the transaction of the write: the process may die, and its client finds it there."""
    from trivet.memory.repeatable import Repeatable

    write = Repeatable(b"resident", call.once, bytes(call.request))
    kept = memory.engine.store.idempotency.act(write.name, write.request, lambda: write.seal(act()))
    memory.engine.worker.wake()  # the act itself did before its work could be seen
    assert kept.answer is not None, "act and answer are one transaction"
    return write.open(kept.answer)


def result_of(verb: Verb, body: bytes) -> Any:
    return None if verb.result is None else msgspec.json.decode(body, type=known_type(verb.result))


def failure_of(error: TrivetError) -> bytes:
    return msgspec.json.encode(Failed(type(error).__name__, str(error)))


def error_of(body: bytes) -> TrivetError:
    """The same error that a store of one's own would have raised."""
    failed = msgspec.json.decode(body, type=known_type(Failed))
    kind = getattr(errors, failed.kind, StoreError)
    return kind(failed.message) if issubclass(kind, TrivetError) else StoreError(failed.message)


def surroundings(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """What an answer depends on besides the settings: where keys of secrets lie, and keys of services in use."""
    found = {"home": environment.get("HOME", ""), "config": str(config_path(environment).absolute())}
    services = (
        settings.embedder,
        settings.rerank,
        settings.graph_llm,
        settings.expand_llm,
        settings.capture_llm,
        settings.secrets_vault,
    )
    if any(":" in service for service in services):
        found |= {name: value for name, value in environment.items() if _SERVICE.fullmatch(name)}
    for member in settings.federation.values():
        found |= {name: environment[name] for name in (member.key_env, *member.environment) if name in environment}
    return found
