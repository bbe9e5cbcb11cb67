"""What another system is sent: the query put into arguments, addresses and bodies, and the key to it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from trivet.search.systems.reply import SystemFailed, SystemQuery
from trivet.settings.systems import FETCH_K, PLACEHOLDERS, QUERY, WORDS, OtherSystem

_placeholder = re.compile("|".join(map(re.escape, PLACEHOLDERS)))
# What means something else than itself in the regular expressions of grep -E and of rg alike.
_special = re.compile(r"[\\.\[{()*+?^$|]")


def filled_arguments(command: Sequence[str], system: OtherSystem, asked: SystemQuery) -> list[str]:
    """Arguments of a program. A query cannot become an option: it never begins with a dash."""
    said = {**_values(system, asked), QUERY: asked.query.lstrip("- \t\n")}
    return [_filled(part, said) for part in command]


def filled_address(system: OtherSystem, asked: SystemQuery) -> str:
    values = {mark: quote(value, safe="") for mark, value in _values(system, asked).items()}
    return _filled(system.http, values)


def filled_value(template: Any, system: OtherSystem, asked: SystemQuery) -> Any:
    """A JSON value, its texts filled; one that is nothing but {fetch_k} becomes a number."""
    if template == FETCH_K:
        return system.fetch_k
    if isinstance(template, str):
        return _filled(template, _values(system, asked))
    if isinstance(template, dict):
        return {name: filled_value(value, system, asked) for name, value in template.items()}
    if isinstance(template, list | tuple):
        return [filled_value(value, system, asked) for value in template]
    return template


def asks(parts: Sequence[str]) -> bool:
    return any(mark in part for part in parts for mark in (QUERY, WORDS))


def _values(system: OtherSystem, asked: SystemQuery) -> dict[str, str]:
    """The words are joined as programs that search by regular expressions want them."""
    words = "|".join(_special.sub(r"\\\g<0>", word) for word in asked.words)
    return {QUERY: asked.query, WORDS: words, FETCH_K: str(system.fetch_k)}


def _filled(text: str, values: dict[str, str]) -> str:
    """In one go, so that a query that looks like a placeholder stays what it is."""
    return _placeholder.sub(lambda mark: values[mark[0]], text)


def key_of(system: OtherSystem) -> dict[str, str]:
    """The header with the key, out of the environment: settings are shown and backed up, keys are not."""
    if not system.key_env:
        return {}
    key = os.environ.get(system.key_env, "")
    if not key:
        raise SystemFailed(f"the variable {system.key_env}, which should hold its key, is not set")
    return {"Authorization": f"Bearer {key}"}
