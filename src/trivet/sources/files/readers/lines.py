"""Lines of JSON. A last line without its end is one that is being written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from trivet.errors import InvalidInput


def objects(text: str) -> Iterator[dict[str, Any]]:
    rows = text.split("\n")
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        try:
            value = msgspec.json.decode(row)
        except (msgspec.DecodeError, RecursionError):
            if number == len(rows):
                return
            raise InvalidInput(
                f"line {number} is not JSON. If the file was cut off there, take that line away"
            ) from None
        if isinstance(value, dict):
            yield value


def first_object(text: str) -> dict[str, Any]:
    try:
        return next(objects(text), {})
    except InvalidInput:
        return {}
