"""Time as Trivet stores it: ISO 8601, UTC, microseconds, fixed width, so that text order is time order."""

from __future__ import annotations

from datetime import UTC, datetime

from trivet.errors import InvalidInput


def now() -> str:
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


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
