"""A verb of the facade as a message to the resident process, and its result or error as the answer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trivet import contract, errors
from trivet.client.call import arguments_of
from trivet.contract import BY_NAME
from trivet.errors import StoreError, TrivetError
from trivet.ids import new_id
from trivet.settings import Settings, config_path
from trivet.trivet import Trivet

CALL = b"call"
OK = b"ok"
ERROR = b"error"
ALONE = b"alone"
OLD = b"version"
# Not a verb of the contract: the command line does what a write left behind, so that the next recall finds it.
DRAIN = "drain"
# Keys of services, and the way to them. They are compared, never kept.
_SERVICE = re.compile(r"\w*(?:_API_KEY|_TOKEN|_PROXY)", re.IGNORECASE)


class Asked(msgspec.Struct, frozen=True):
    """One call. `arguments` are those of the contract's request, checked before they are sent."""

    settings: Settings
    surroundings: Mapping[str, str]
    verb: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class Failed(msgspec.Struct, frozen=True):
    kind: str
    message: str


def can_be_asked(verb: str) -> bool:
    """What else the facade does needs the store itself, or carries streams."""
    return verb in BY_NAME or verb == DRAIN


def message_of(
    settings: Settings, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> bytes:
    verb = method.__name__
    asked = Asked(settings, surroundings(settings, os.environ), verb)
    if verb in BY_NAME:
        request = contract.request_of(BY_NAME[verb].request, arguments_of(method, args, kwargs))
        if isinstance(request, contract.Remember):
            # With the id made here, a write that is repeated without the process can never become two memories.
            request = msgspec.structs.replace(request, id=request.id or new_id())
        asked = msgspec.structs.replace(asked, arguments=msgspec.Raw(msgspec.json.encode(request)))
    return msgspec.json.encode(asked)


def repeated(message: bytes) -> dict[str, Any]:
    """The arguments of a message, for whoever does it again without the resident process."""
    asked = msgspec.json.decode(message, type=Asked)
    return _arguments(asked) if asked.verb in BY_NAME else {}


def done(memory: Trivet, asked: Asked) -> bytes:
    """Does it, and gives the result as it is sent."""
    if asked.verb == DRAIN:
        from trivet.memory.maintenance import read_now  # not for the client, whose start it would slow

        engine = memory.engine
        return msgspec.json.encode(engine.worker.drain(None) if engine.embedding.local else read_now(engine))
    return msgspec.json.encode(getattr(memory, asked.verb)(**_arguments(asked)))


def result_of(verb: str, body: bytes) -> Any:
    kind = int if verb == DRAIN else BY_NAME[verb].result
    return msgspec.json.decode(body, type=kind) if kind is not None else None


def failure_of(error: TrivetError) -> bytes:
    return msgspec.json.encode(Failed(type(error).__name__, str(error)))


def error_of(body: bytes) -> TrivetError:
    """The same error that a store of one's own would have raised."""
    failed = msgspec.json.decode(body, type=Failed)
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


def _arguments(asked: Asked) -> dict[str, Any]:
    request = msgspec.json.decode(asked.arguments, type=BY_NAME[asked.verb].request)
    fields = msgspec.structs.fields(request)
    return {field.name: value for field in fields if (value := getattr(request, field.name)) is not msgspec.UNSET}
