"""Completes ids that a caller gave by their first characters, over what that caller may see."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from trivet.contract import Request
from trivet.contract.fields import ID_LENGTH, SHORTEST_ID, IdOf, id_fields
from trivet.errors import InvalidInput, NotFound
from trivet.memory.engine import Engine

R = TypeVar("R", bound=Request[Any])

# An error that lists more is not read.
MATCHES_LISTED = 8
_START_OF_ID = re.compile(r"[0-9a-f-]+")


def with_whole_ids(engine: Engine, request: R) -> R:
    """The request with every shortened id completed. What names no memory is refused before the verb begins."""
    whole: dict[str, Any] = {}
    for field, kind in id_fields(type(request)).items():
        given = getattr(request, field)
        if isinstance(given, str) and len(given) < ID_LENGTH:
            whole[field] = whole_id(engine, given, kind, field)
        elif isinstance(given, tuple):
            whole[field] = tuple(one if len(one) >= ID_LENGTH else whole_id(engine, one, kind, field) for one in given)
    return msgspec.structs.replace(request, **whole) if whole else request


def whole_id(engine: Engine, start: str, kind: IdOf, field: str) -> str:
    """The one id that starts so; an error lists them if there are several."""
    if not starts_an_id(start):
        raise InvalidInput(f"{field}: {start!r} is no id and no start of one. Ids look like 0199c2f4-7d1e-7a3b-….")
    found = ids_starting_with(engine, start, kind)
    if not found:
        raise NotFound(
            f"There is no {kind} here whose id starts with {start}. `{_LISTING[kind]}` shows the ids there are."
        )
    if len(found) > 1:
        listed = ", ".join(found[:MATCHES_LISTED]) + (" and more" if len(found) > MATCHES_LISTED else "")
        raise InvalidInput(f"{field}: {start} is the start of several ids. Give more characters of one of: {listed}.")
    return found[0]


def starts_an_id(text: str) -> bool:
    return len(text.strip()) >= SHORTEST_ID and _START_OF_ID.fullmatch(text.strip().lower()) is not None


def ids_starting_with(engine: Engine, start: str, kind: IdOf) -> list[str]:
    starting: Mapping[IdOf, Callable[[str, int], list[str]]] = {
        "memory": engine.store.memories.ids_starting_with,
        "proposal": engine.store.inbox.ids_starting_with,
    }
    return starting[kind](start.strip().lower(), MATCHES_LISTED + 1)


_LISTING: Mapping[IdOf, str] = {"memory": "list", "proposal": "inbox"}
