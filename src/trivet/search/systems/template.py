"""The query put where a member wants it: into arguments, addresses and bodies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from trivet.search.systems.reported_hits import Asked
from trivet.settings.systems import FETCH_K, PLACEHOLDERS, QUERY, WORDS, Member

# What means something else than itself in the regular expressions of grep -E and of rg alike.
_special = re.compile(r"[\\.\[{()*+?^$|]")


def filled_arguments(command: Sequence[str], member: Member, asked: Asked) -> list[str]:
    """Arguments of a program. A query cannot become an option: it never begins with a dash."""
    said = {**_values(member, asked), QUERY: asked.query.lstrip("- \t\n")}
    return [_filled(part, said) for part in command]


def filled_address(member: Member, asked: Asked) -> str:
    values = {mark: quote(value, safe="") for mark, value in _values(member, asked).items()}
    return _filled(member.http, values)


def filled_value(template: Any, member: Member, asked: Asked) -> Any:
    """A JSON value, its texts filled; one that is nothing but {fetch_k} becomes a number."""
    if template == FETCH_K:
        return member.fetch_k
    if isinstance(template, str):
        return _filled(template, _values(member, asked))
    if isinstance(template, dict):
        return {name: filled_value(value, member, asked) for name, value in template.items()}
    if isinstance(template, list | tuple):
        return [filled_value(value, member, asked) for value in template]
    return template


def asks(parts: Sequence[str]) -> bool:
    return any(mark in part for part in parts for mark in (QUERY, WORDS))


def _values(member: Member, asked: Asked) -> dict[str, str]:
    """The words are joined as programs that search by regular expressions want them."""
    words = "|".join(_special.sub(r"\\\g<0>", word) for word in asked.words)
    return {QUERY: asked.query, WORDS: words, FETCH_K: str(member.fetch_k)}


def _filled(text: str, values: dict[str, str]) -> str:
    """In one go, so that a query that looks like a placeholder stays what it is."""
    return re.sub("|".join(map(re.escape, PLACEHOLDERS)), lambda mark: values[mark[0]], text)
