"""What may be told: an error quotes what was wrong, and what was wrong may be a secret in the wrong place."""

from __future__ import annotations

from trivet.secrets.detect import find
from trivet.secrets.placeholder import placeholder


def tellable(text: str) -> str:
    for found in reversed(find(text)):
        text = f"{text[: found.start]}{placeholder(found.kind, 1)}{text[found.stop :]}"
    return text
