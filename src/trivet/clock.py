"""Time as Trivet stores it: ISO 8601, UTC, microseconds, fixed width, so that text order is time order.

Callers are given moments (aware datetimes in UTC); what goes into a query or a column is a stamp.
"""

from __future__ import annotations

from datetime import UTC, datetime

from trivet.errors import InvalidInput


def now() -> str:
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def moment(text: str) -> datetime:
    """The moment that a stamp names, or a date, which is a day in UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def moment_or_none(text: str | None) -> datetime | None:
    return None if text is None else moment(text)


def stamp_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def parse_time(text: str, field: str) -> str:
    """A date or a date and time in ISO 8601; without an offset it is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{field}: {text!r} is not a time. Write it in ISO 8601, such as 2026-03-01 or 2026-03-01T09:30:00Z."
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return stamp(moment)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{field}: {text!r} is outside the years 1 to 9999 in UTC.") from None
