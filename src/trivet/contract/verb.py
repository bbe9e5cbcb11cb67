"""What a verb is: a request with its parameters, and a declaration of everything the surfaces need to offer it.

Python (`Trivet`, `AsyncTrivet`), the command line, MCP, HTTP, the client and the docs all derive from `VERBS`. A verb
is declared once:

    @verb("get", "trivet.memory.browse:get", needs="read", routes=(Route("GET", "/v1/memories/{id}"),))
    class Get(Request[Memory], frozen=True, kw_only=True):
        \"\"\"Show one memory by its id.\"\"\"

        id: Id
        reveal: Reveal = False

The class is what a caller must give (types, bounds, defaults, texts), its docstring the summary, `Request[Memory]` says
what comes back. The body, `get(engine, request)`, is imported when the verb is first performed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from importlib import import_module
from string import Formatter
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

import msgspec

from trivet.types import Right

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
# "store": only the owner, who has the store itself; no key of a server allows it.
Need = Right | Literal["store"]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R", bound="type[Request[Any]]")


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all parameters. Unknown ones are refused, so a misspelt option is never ignored."""


class Request(Parameters, Generic[T_co], frozen=True, kw_only=True):
    """What a caller asks of one verb; `T_co` is what the verb answers."""


class Route(msgspec.Struct, frozen=True):
    """An address over HTTP. What the path does not name travels in the query of a GET or DELETE, else in the body."""

    method: Method
    path: str
    status: int = 200

    @property
    def in_path(self) -> tuple[str, ...]:
        return tuple(name for _, name, _, _ in Formatter().parse(self.path) if name)

    @property
    def in_query(self) -> bool:
        return self.method in ("GET", "DELETE")


class Tool(msgspec.Struct, frozen=True):
    """How an agent sees a verb over MCP. The guidance follows the verb's summary and says when to use it.

    An agent's model reads this in every conversation. So parameters that agents seldom need (`rare`) are folded into
    one argument, and one that another tool tells of (`described_elsewhere`) is not explained again; `elsewhere` says where.
    """

    name: str
    title: str
    guidance: str
    rare: frozenset[str] = frozenset()
    described_elsewhere: frozenset[str] = frozenset()
    elsewhere: str = ""
    essential: bool = False  # the model has it in sight from the start, where a program shows it the others on demand


class Verb(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    name: str
    request: type[Request[Any]]
    result: Any
    summary: str
    body: str | Callable[[Any, Any], Any]  # "module:function", imported when first needed
    needs: Need = "write"
    destructive: bool = False
    idempotent: bool = True
    etag: bool = (
        False  # the answer is a memory as it now is; a write can be made to depend on what was read
    )
    atomic: bool = (
        False  # all that it does may be one transaction, also with the answer that is kept of it
    )
    secret_answer: bool = False  # must not be kept to be given again
    routes: tuple[Route, ...] = ()
    tool: Tool | None = None
    instead: str = ""  # with needs="store": what to do where a server has the store
    positional: tuple[str, ...] = ()  # in Python, besides what must be given
    command: bool = True  # on the command line
    example: str = ""  # there, where no command of its own says more

    @property
    def read_only(self) -> bool:
        if self.needs == "read":
            return True
        return bool(self.routes) and all(route.method == "GET" for route in self.routes)

    @property
    def guarded(self) -> bool:
        """Whether it takes If-Match."""
        return self.etag and not self.read_only

    @property
    def is_deduplicated(self) -> bool:
        """Whether a server keeps its answer, so that a write that is sent again acts once."""
        return not self.read_only and not self.secret_answer

    @cached_property
    def perform(self) -> Callable[[Any, Any], Any]:
        if not isinstance(self.body, str):
            return self.body
        module, _, function = self.body.partition(":")
        found: Callable[[Any, Any], Any] = getattr(import_module(module), function)
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self.request.__struct_fields__)

    @cached_property
    def required(self) -> frozenset[str]:
        fields, defaults = self.request.__struct_fields__, self.request.__struct_defaults__
        given = dict(zip(fields[len(fields) - len(defaults) :], defaults, strict=True))
        return frozenset(
            name for name in fields if given.get(name, msgspec.NODEFAULT) is msgspec.NODEFAULT
        )

    @cached_property
    def positional_names(self) -> tuple[str, ...]:
        """Those that need no name in Python, in their order."""
        return tuple(
            name
            for name in self.request.__struct_fields__
            if name in self.required or name in self.positional
        )

    @cached_property
    def signature(self) -> inspect.Signature:
        """As a Python method has it. What must be given comes first and needs no name."""
        fields = msgspec.structs.fields(self.request)
        placed = [field for field in fields if field.name in self.positional_names]
        named = [field for field in fields if field not in placed]
        return inspect.Signature(
            [
                inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY),
                *(_parameter(field, inspect.Parameter.POSITIONAL_OR_KEYWORD) for field in placed),
                *(_parameter(field, inspect.Parameter.KEYWORD_ONLY) for field in named),
            ],
            return_annotation=self.result,
        )


VERBS: dict[str, Verb] = {}
_VERB_OF: dict[type[Request[Any]], Verb] = {}
# Called with each verb that is declared later: the facades, which make a method of it.
LISTENERS: list[Callable[[Verb], None]] = []


def verb(name: str, body: str | Callable[[Any, Any], Any], **declared: Any) -> Callable[[R], R]:
    """Declares the verb that a request belongs to; the keywords are the fields of `Verb`."""

    def declare(request: R) -> R:
        summary = inspect.cleandoc(request.__doc__ or "")
        made = Verb(
            name=name,
            request=request,
            result=_result_of(request),
            summary=summary,
            body=body,
            **declared,
        )
        VERBS[name] = _VERB_OF[request] = made
        for listener in LISTENERS:
            listener(made)
        return request

    return declare


def verb_of(request: Request[Any]) -> Verb:
    return _VERB_OF[type(request)]


def given(request: Request[Any]) -> dict[str, Any]:
    """The parameters that differ from their defaults."""
    defaults = _defaults(type(request))
    return {name: value for name in defaults if (value := getattr(request, name)) != defaults[name]}


@cache
def _defaults(request: type[Parameters]) -> Mapping[str, Any]:
    return {field.name: field.default for field in msgspec.structs.fields(request)}


def _result_of(request: type[Request[Any]]) -> Any:
    for base in getattr(request, "__orig_bases__", ()):
        if get_origin(base) is Request:
            (result,) = get_args(base)
            return None if result is type(None) else result
    raise TypeError(
        f"{request.__name__} must derive from Request[...], which says what the verb answers"
    )


def _parameter(field: msgspec.structs.FieldInfo, kind: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.required else field.default
    return inspect.Parameter(field.name, kind, default=default, annotation=field.type)
