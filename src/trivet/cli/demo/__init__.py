"""Four hundred memories of an invented company, to see Trivet at work on something real enough."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files


def lines() -> Iterator[str]:
    """The memories as lines of JSON, ready for an import."""
    # Not splitlines(), which would also cut at separators that may stand inside a JSON text.
    return iter(
        files("trivet.lab").joinpath("house", "memories.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    )
