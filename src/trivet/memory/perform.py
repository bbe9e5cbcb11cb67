"""Performs a verb: the one place where a caller's rights are checked, whatever surface the request came by."""

from __future__ import annotations

from typing import TypeVar

from trivet.contract import Request, verb_of
from trivet.memory.engine import Engine

T = TypeVar("T")


def perform(engine: Engine, request: Request[T]) -> T:
    """The request was checked when it was made; the verb's body gets it as it is."""
    verb = verb_of(request)
    engine.demand(verb.needs)
    if getattr(request, "reveal", False):
        note_reveal(engine, verb.name, getattr(request, "id", None))
    answer: T = verb.perform(engine, request)
    return answer


def note_reveal(engine: Engine, verb: str, id: str | None) -> None:
    """Shows sensitive contents only to a caller with the right to, and puts that on the audit record."""
    engine.demand("reveal")
    if engine.caller:
        engine.store.audit.note("reveal sensitive", id, verb)
