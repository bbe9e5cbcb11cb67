"""What a member says, before anybody here believes it."""

from __future__ import annotations

from typing import Any

import msgspec

from trivet.types import Value

# A hit as it came, by the names of our fields. Nothing in it has been looked at.
Raw = dict[str, Any]


class MemberFailed(Exception):
    """A member gave no answer that can be used. The message is shown in the answer's health.

    It is in our words alone. What the member itself said is in `quoted`, which `trivet doctor` shows to people: an
    agent would read it outside of what is marked as data.
    """

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


class Asked(msgspec.Struct, frozen=True):
    """What a member is asked: the query without secrets, the words of it that tell documents apart."""

    query: str
    words: tuple[str, ...]


class Told(Value, frozen=True, kw_only=True):
    """One hit of a member, checked and bounded. `common`: its id is a URI or a path that others use as well."""

    id: str
    common: bool
    score: float
    text: str = ""
    title: str | None = None
    line: int | None = None


class Reply(Value, frozen=True, kw_only=True):
    """The hits of one member, best first, and what was wrong with those left out."""

    hits: tuple[Told, ...] = ()
    floor: float = 0.0
    ranks_only: bool = False
    notes: tuple[str, ...] = ()
