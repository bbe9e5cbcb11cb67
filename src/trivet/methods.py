"""The verbs as methods of `Trivet` and `AsyncTrivet`; the stub `methods.pyi` is generated."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import date
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin

from msgspec import Meta

from trivet.contract import VERBS, Request, Verb, describe, request_of
from trivet.contract.verb import LISTENERS

T = TypeVar("T")


class Methods(ABC):
    """One method per verb."""

    @abstractmethod
    def perform(self, request: Request[T]) -> T:
        """Perform a checked request, wherever the store is."""


class AsyncMethods(ABC):
    """One coroutine per verb."""

    @abstractmethod
    async def perform(self, request: Request[T]) -> T:
        """Perform a checked request, wherever the store is."""


def bind(verb: Verb, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request[Any]:
    """Return a method's arguments as a checked request.

    Raises:
        TypeError: An argument is unknown, missing or given twice, as in a Python call.
    """
    arguments = dict(zip(verb.positional_names, args, strict=False)) | kwargs
    whole = len(arguments) == len(args) + len(kwargs)  # none surplus, none twice
    if not (whole and verb.required <= arguments.keys() <= verb.names):
        _refuse(verb, args, kwargs)
    # The owner's process may pass callbacks and paths, which no schema describes.
    if verb.needs == "store":
        return verb.request(**arguments)
    return request_of(verb.request, arguments)


def _refuse(verb: Verb, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    try:
        verb.signature.bind(None, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{verb.name}() {error}") from None
    raise AssertionError("a call that binds is not refused")


def add(verb: Verb) -> None:
    setattr(Methods, verb.name, _LazyMethod(verb, Methods, _sync_method))
    setattr(AsyncMethods, verb.name, _LazyMethod(verb, AsyncMethods, _async_method))


def _sync_method(verb: Verb) -> Callable[..., Any]:
    def method(self: Methods, /, *args: Any, **kwargs: Any) -> Any:
        return self.perform(bind(verb, args, kwargs))

    return method


def _async_method(verb: Verb) -> Callable[..., Any]:
    async def method(self: AsyncMethods, /, *args: Any, **kwargs: Any) -> Any:
        return await self.perform(bind(verb, args, kwargs))

    return method


class _LazyMethod:
    """A placeholder until first access: all signatures and help would slow every start."""

    def __init__(self, verb: Verb, owner: type, make: Callable[[Verb], Any]) -> None:
        self._verb = verb
        self._owner = owner
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        verb, method = self._verb, self._make(self._verb)
        method.__name__, method.__qualname__ = verb.name, f"{self._owner.__name__}.{verb.name}"
        method.__signature__, method.__doc__ = plain_signature(verb), documentation(verb)
        setattr(self._owner, verb.name, method)
        return method.__get__(instance, owner)


def plain_signature(verb: Verb) -> inspect.Signature:
    """Return the signature without bounds and texts."""
    signature = verb.signature
    parameters = [
        parameter.replace(annotation=plain(parameter.annotation))
        if parameter.name != "self"
        else parameter
        for parameter in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters)


def documentation(verb: Verb) -> str:
    texts = {name: text_of(verb, name) for name in verb.signature.parameters if name != "self"}
    lines = [f":param {name}: {text}" for name, text in texts.items()]
    return "\n".join([verb.summary, "", *lines]) if lines else verb.summary


def text_of(verb: Verb, name: str) -> str:
    if verb.needs != "store":
        return describe(verb.request, name)
    annotation = verb.signature.parameters[name].annotation
    return str(annotation.__metadata__[-1].description)


def plain(annotation: Any) -> Any:
    """Return the type as callers see it: `tuple[Tag, ...]` accepts any sequence."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *about = get_args(annotation)
        is_time = any(
            isinstance(meta, Meta) and meta.extra and meta.extra.get("is") == "time"
            for meta in about
        )
        return inner | date if is_time else plain(inner)  # datetime is a subclass of date
    if origin is tuple:
        return Sequence[plain(get_args(annotation)[0])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        options = [plain(option) for option in get_args(annotation)]
        return reduce(or_, sorted(options, key=lambda option: option is NoneType))
    return annotation


for _verb in VERBS.values():
    add(_verb)
LISTENERS.append(add)
