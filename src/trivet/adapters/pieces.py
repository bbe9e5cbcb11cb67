"""Texts that are too large for one memory, cut into several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trivet.secrets.detect import SecretSpan


def pieces(text: str, characters: int, secrets: Sequence[SecretSpan] = ()) -> Iterator[str]:
    """Up to so many characters each, cut where no secret stands: half of one would not be found and encrypted."""
    start = 0
    while start < len(text):
        end = min(start + characters, len(text))
        end = next((span.start for span in secrets if start < span.start < end < span.stop), end)
        yield text[start:end]
        start = end
