"""A verb: a request with its parameters, and a declaration from which all surfaces derive.

    @verb(
        "get",
        "trivet.memory.browse:get",
        needs="read",
        routes=(Route("GET", "/v1/memories/{id}"),),
    )
    class Get(Request[Memory], frozen=True, kw_only=True):
        \"\"\"Show one memory by its id.\"\"\"

        id: Id
        reveal: Reveal = False

The class holds the parameters (types, bounds, defaults, texts), its one-line docstring is the
summary, and `Request[Memory]` names the answer. The first call imports the body,
`get(engine, request)`.
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
# "store": only the owner of the store; no server key allows it.
Need = Right | Literal["store"]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R", bound="type[Request[Any]]")


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all requests. Rejects unknown parameters, so no misspelled option is ignored."""


class Request(Parameters, Generic[T_co], frozen=True, kw_only=True):
    """The parameters of one verb; `T_co` is the type of its answer."""


class Route(msgspec.Struct, frozen=True):
    """An HTTP address; other parameters travel in a GET's or DELETE's query, else in the body."""

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
    """A verb as an MCP tool; its description is the verb's summary plus `guidance`.

    A model reads it in every conversation. So `advanced` parameters are folded into one argument,
    and those in `undescribed` are not explained again; `description_from` says where they are.
    """

    name: str
    title: str
    guidance: str
    advanced: frozenset[str] = frozenset()
    undescribed: frozenset[str] = frozenset()
    description_from: str = ""
    # Programs that load tools on demand show this one to the model from the start.
    essential: bool = False


class Verb(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    name: str
    request: type[Request[Any]]
    result: Any
    summary: str
    body: str | Callable[[Any, Any], Any]  # "module:function", imported on first use
    needs: Need = "write"
    destructive: bool = False
    idempotent: bool = True
    etag: bool = False  # answers the current memory; a write may depend on the revision read
    # Can run in one transaction together with the answer that the server keeps for retries.
    atomic: bool = False
    secret_answer: bool = False  # never keep the answer for a retry
    routes: tuple[Route, ...] = ()
    tool: Tool | None = None
    instead: str = ""  # with needs="store": what to do if a server holds the store
    positional: tuple[str, ...] = ()  # passed by position in Python, besides required ones
    command: bool = True  # offered on the command line
    example: str = ""  # of the derived command

    @property
    def read_only(self) -> bool:
        if self.needs == "read":
            return True
        return bool(self.routes) and all(route.method == "GET" for route in self.routes)

    @property
    def guarded(self) -> bool:
        """Whether the verb accepts If-Match."""
        return self.etag and not self.read_only

    @property
    def is_deduplicated(self) -> bool:
        """Whether a server keeps the answer, so that a repeated write acts only once."""
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
        """The parameters that Python accepts by position."""
        return tuple(
            name
            for name in self.request.__struct_fields__
            if name in self.required or name in self.positional
        )

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature of the Python method."""
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
# Called for each verb declared later, so that the facades get its method.
LISTENERS: list[Callable[[Verb], None]] = []


def verb(name: str, body: str | Callable[[Any, Any], Any], **declared: Any) -> Callable[[R], R]:
    """Declare the decorated request's verb; keyword arguments are fields of `Verb`."""

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
    """Return the parameters that differ from their defaults."""
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
        f"{request.__name__} must derive from Request[...], which names the type of the answer"
    )


def _parameter(field: msgspec.structs.FieldInfo, kind: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.required else field.default
    return inspect.Parameter(field.name, kind, default=default, annotation=field.type)
