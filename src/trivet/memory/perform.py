"""Performs a verb: the one place where rights are checked and ids completed, whatever surface the request came by."""

from __future__ import annotations

from typing import TypeVar

from trivet.contract import Request, verb_of
from trivet.memory.engine import Engine
from trivet.memory.whole_ids import with_whole_ids

T = TypeVar("T")


def perform(engine: Engine, request: Request[T]) -> T:
    """The request was checked when it was made; the verb's body gets it with its ids completed."""
    verb = verb_of(request)
    engine.demand(verb.needs)
    request = with_whole_ids(engine, request)
    if getattr(request, "reveal", False):
        note_reveal(engine, verb.name, getattr(request, "id", None))
    answer: T = verb.perform(engine, request)
    return answer


def note_reveal(engine: Engine, verb: str, id: str | None) -> None:
    """Shows sensitive contents only to a caller with the right to, and puts that on the audit record."""
    engine.demand("reveal")
    if engine.caller:
        engine.store.audit.note("reveal sensitive", id, verb)
