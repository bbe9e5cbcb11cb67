"""What a table of models has for each kind: how a setting writes it, and what opens it. Two tables use this.

A new embedder is a file and a line in `embed/spec.py`, a new reranker a file and a line in `rerank/spec.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal
from urllib.parse import urlsplit

from trivet.errors import InvalidInput

# What follows the name of the kind: nothing, the path of a folder, a model (with an address and options), an address.
Follows = Literal["nothing", "path", "model", "url"]

# A model name may hold an @ of its own, so only one that starts a URL divides.
HOSTED_FORM = re.compile(r"(?P<model>[^#]+?)(@(?P<url>https?://[^#]*))?(#(?P<options>.*))?")


@dataclass(frozen=True, slots=True)
class Kind:
    """`opens` names a module and a function or class in it; it is imported when the first such model is opened."""

    written: str
    opens: str = ""
    follows: Follows = "nothing"

    def opener(self) -> Callable[..., Any]:
        module, _, name = self.opens.partition(":")
        opener: Callable[..., Any] = getattr(import_module(module), name)
        return opener


def known(kinds: Mapping[str, Kind]) -> str:
    return ", ".join(kind.written for kind in kinds.values())


def checked_url(url: str, whose: str = "embedder") -> str:
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        acceptable = bool(parts.hostname) and not (parts.username or parts.password or parts.query)
        _ = parts.port
    except ValueError:
        acceptable = False
    if not acceptable:
        # The value is not repeated: what makes it unacceptable may be a password.
        raise InvalidInput(f"the {whose}'s URL must be like http://127.0.0.1:11434/v1: a host, no password, no query")
    return url.rstrip("/")
