"""From the filters of a request to the Filter that every query carries."""

from __future__ import annotations

from trivet.clock import time_given
from trivet.contract import Selection
from trivet.errors import InvalidInput
from trivet.settings import Settings
from trivet.types import Filter


def filter_of(request: Selection, settings: Settings, viewer: str | None) -> Filter:
    unknown = sorted(set(request.category) - set(settings.categories))
    if unknown:
        known = ", ".join(settings.categories)
        raise InvalidInput(f"category: there is no {', '.join(unknown)}. The categories are {known}.")
    after, before = _time(request, "created_after"), _time(request, "created_before")
    if after is not None and before is not None and after >= before:
        raise InvalidInput("created_after must be earlier than created_before; no memory can be in between otherwise.")
    return Filter(
        scope=request.scope,
        categories=tuple(sorted(set(request.category))),
        tags=tuple(sorted(set(request.tags))),
        states=tuple(sorted(set(request.state))) or Filter().states,
        source=request.source,
        created_after=after,
        created_before=before,
        as_of=_time(request, "as_of"),
        viewer=viewer,
    )


def _time(request: Selection, field: str) -> str | None:
    text: str | None = getattr(request, field)
    return None if text is None else time_given(text, field)
