"""The resident process's socket folder, lock and messages."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trivet import errors
from trivet.code.types import CodeAnswer, Question
from trivet.common.ids import new_id
from trivet.common.threads import prepared_type
from trivet.contract import (
    VERBS,
    BudgetsRequest,
    DoctorRequest,
    DrainRequest,
    Remember,
    Request,
    Verb,
    verb_of,
)
from trivet.errors import Conflict, InvalidInput, StoreError, TrivetError
from trivet.serve.resident import hook_client
from trivet.settings import Settings, config_path, load_settings
from trivet.trivet import Trivet

SUPPORTED = sys.platform != "win32"
LOCK = "resident.lock"
LOG = "resident.log"


def socket_file() -> Path:
    return Path(os.fsdecode(hook_client.socket_path(os.environb)))


def ensure_socket_folder() -> Path:
    """Return the socket's folder; refuse one that other users own or may enter."""
    if not SUPPORTED:
        raise InvalidInput(
            "The resident process needs Unix sockets, which this system lacks. "
            "Everything works without it."
        )
    file = socket_file()
    if len(os.fsencode(file)) > hook_client.MAX_SOCKET_PATH:
        raise InvalidInput(
            f"{file} is too long for a socket. Set XDG_RUNTIME_DIR to a shorter folder."
        )
    folder = file.parent
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise StoreError(
            f"Cannot create {folder}: {error.strerror}. "
            "Set XDG_RUNTIME_DIR to a folder that you own."
        ) from None
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        raise StoreError(
            f"{folder} must belong to you and be closed to other users. Nothing was written. "
            "Remove it, or set XDG_RUNTIME_DIR to another folder."
        )
    return folder


class Lock:
    """The process's lock, which the system releases even after a kill -9."""

    def __init__(self) -> None:
        import fcntl

        file = ensure_socket_folder() / LOCK
        self._handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise Conflict(
                f"The resident process is already running, as process {lock_holder() or '?'}."
            ) from None
        os.ftruncate(self._handle, 0)
        os.write(self._handle, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        os.ftruncate(self._handle, 0)
        os.close(self._handle)


def lock_holder() -> int | None:
    """Return the id of the living process that holds the lock."""
    if not SUPPORTED:
        return None
    import fcntl

    try:
        handle = os.open(socket_file().parent / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        number = os.read(handle, 20).strip()
        return int(number) if number.isdigit() else None
    finally:
        os.close(handle)
    return None


STATUS = b"status"


READY = b"ready"


def with_absolute_path(settings: Settings, folder: Path) -> Settings:
    if "://" in settings.path:
        return settings
    return msgspec.structs.replace(settings, path=str(folder / Path(settings.path).expanduser()))


END = b"end"


PAGE = b"page"


class PageCall(msgspec.Struct, frozen=True):
    settings: Settings
    environment: Mapping[str, str]


CALL = b"call"
OK = b"ok"
ERROR = b"error"
DECLINED = b"alone"
VERSION_MISMATCH = b"version"
# Service keys and proxies, which are compared and never stored.
_SERVICE = re.compile(r"\w*(?:_API_KEY|_TOKEN|_PROXY)", re.IGNORECASE)


LOCAL_ONLY_REQUESTS = (DoctorRequest, BudgetsRequest)


class Call(msgspec.Struct, frozen=True):
    settings: Settings
    environment: Mapping[str, str]
    verb: str
    request: msgspec.Raw = msgspec.Raw(b"{}")
    once: str = ""  # idempotency key of a write


class CallFailure(msgspec.Struct, frozen=True):
    kind: str
    message: str


def is_forwardable(verb: Verb) -> bool:
    """Return whether the resident process may perform the verb.

    Verbs that need the store run in the client, except `drain`. So do checks: the process may have
    a replaced file open.
    """
    return (
        verb.needs != "store" and verb.request not in LOCAL_ONLY_REQUESTS
    ) or verb.request is DrainRequest


def with_client_id(request: Request[Any]) -> Request[Any]:
    """Give a new memory its id here, so that a retry cannot create a second one."""
    if isinstance(request, Remember) and request.id is None:
        return msgspec.structs.replace(request, id=new_id())
    return request


def call_of(settings: Settings, request: Request[Any]) -> Call:
    encoded = b"{}" if isinstance(request, DrainRequest) else msgspec.json.encode(request)
    verb = verb_of(request)
    once = new_id() if verb.atomic else ""
    return Call(
        settings, call_environment(settings, os.environ), verb.name, msgspec.Raw(encoded), once
    )


def perform(memory: Trivet, call: Call) -> bytes:
    if VERBS[call.verb].request is DrainRequest:
        # Here, to keep clients starting fast.
        from trivet.memory.admin.maintenance import read_now

        engine = memory.engine
        return msgspec.json.encode(
            engine.worker.drain(None) if engine.embedding.local else read_now(engine)
        )
    request = msgspec.json.decode(call.request, type=prepared_type(VERBS[call.verb].request))
    if not call.once:
        return msgspec.json.encode(memory.perform(request))
    return _perform_once(memory, call, lambda: msgspec.json.encode(memory.perform(request)))


def _perform_once(memory: Trivet, call: Call, act: Callable[[], bytes]) -> bytes:
    from trivet.memory.perform import IdempotencyRecord

    write = IdempotencyRecord(b"resident", call.once, bytes(call.request))
    kept = memory.engine.store.idempotency.act(write.name, write.request, lambda: write.seal(act()))
    memory.engine.worker.wake()  # the act woke it before its work was visible
    assert kept.answer is not None, "act and answer share one transaction"
    return write.open(kept.answer)


def result_of(verb: Verb, body: bytes) -> Any:
    return (
        None if verb.result is None else msgspec.json.decode(body, type=prepared_type(verb.result))
    )


def failure_of(error: TrivetError) -> bytes:
    return msgspec.json.encode(CallFailure(type(error).__name__, str(error)))


def error_of(body: bytes) -> TrivetError:
    failed = msgspec.json.decode(body, type=prepared_type(CallFailure))
    kind = getattr(errors, failed.kind, StoreError)
    return kind(failed.message) if issubclass(kind, TrivetError) else StoreError(failed.message)


def call_environment(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that answers depend on."""
    found = {
        "home": environment.get("HOME", ""),
        "config": str(config_path(environment).absolute()),
    }
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
        found |= {
            name: environment[name]
            for name in (member.key_env, *member.environment)
            if name in environment
        }
    return found


# Returns None if the folder's index is not open.
AskCode = Callable[[str, Question], CodeAnswer | None]


class HookCall(msgspec.Struct, frozen=True):
    moment: str
    given: bytes
    environment: Mapping[str, str]
    settings: Settings
    code: AskCode | None = None  # set only in the resident process


def hook_call(
    environment: Mapping[str, str], folder: Path, arguments: Sequence[str], given: bytes
) -> HookCall:
    moment, path = _words(arguments)
    return HookCall(
        moment,
        given,
        environment,
        with_absolute_path(load_settings(environment, path=path), folder),
    )


def hook_call_of(parts: Sequence[bytes]) -> HookCall:
    variables, folder, typed, given = parts
    rows = (row.partition(b"=") for row in variables.split(b"\0"))
    environment = {os.fsdecode(name): os.fsdecode(value) for name, _, value in rows}
    arguments = [os.fsdecode(argument) for argument in typed.split(b"\0")]
    return hook_call(environment, Path(os.fsdecode(folder)), arguments, given)


def _words(arguments: Sequence[str]) -> tuple[str, str | None]:
    # Agents' rules make the answer JSON anyway.
    words = [word for word in arguments if word != "--json"]
    path = None
    for index, word in enumerate(words):
        if word == "--path" and index + 1 < len(words):
            path = words[index + 1]
            del words[index : index + 2]
            break
        if word.startswith("--path="):
            path = words.pop(index).partition("=")[2]
            break
    if len(words) != 1:
        raise InvalidInput(
            "A hook command takes one moment and optionally --path FILE, "
            f"but this one has {' '.join(arguments)!r}."
        )
    return words[0], path
