"""What travels between the stores of a laptop and of its server: a memory with its history, whole.

Everything is in the words of JSON, so that a field which one side does not know yet survives the journey.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from trivet.memory_fields import FIELDS
from trivet.types import LinkKind, Permission, Usefulness

Access = Literal["own", "write", "read"]
Fields = Mapping[str, Any]
# What any store can keep. Whoever tells a number beyond that, or below nothing, is not believed.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

# Not part of what a memory says: each machine writes these itself.
LOCAL_FIELDS = frozenset({"id", "owner", "revision", "updated_at"})
# What a reader with the right to write may not change, since it decides who sees a memory and whether it is found.
OWNER_ONLY_FIELDS = frozenset({"tags", "scope", "sensitive", "state", "valid_from", "valid_to"})
KNOWN_FIELDS = frozenset(field.name for field in FIELDS) - LOCAL_FIELDS


class Rev(msgspec.Struct, frozen=True, kw_only=True):
    """One revision. `rev` is its name on every machine, `base` the one it was made from."""

    rev: str
    base: str | None
    author: str | None  # None: the owner of the memory
    at: str
    action: str
    fields: Fields
    number: Number = 0  # its place in the history; a branch has none


class LinkRecord(msgspec.Struct, frozen=True, kw_only=True, order=True):
    source: str
    kind: LinkKind
    target: str
    created_at: str = ""

    @property
    def ends(self) -> tuple[str, str, str]:
        return self.source, self.kind, self.target


class ShareRecord(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """With whom a memory is shared, or a tag of its owner's."""

    grantee: str
    permission: Permission
    tag: str = ""


class FeedbackRecord(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What a user said of a memory that came; `query` is empty where it was not said what was asked."""

    query: str
    verdict: Usefulness
    at: str = ""


class Bundle(msgspec.Struct, frozen=True, kw_only=True, tag="memory"):
    """A memory as one user may have it: its history, the edits beside it, its links, whom it is shared with."""

    id: str
    owner: str
    trunk: tuple[Rev, ...]
    branches: tuple[Rev, ...] = ()
    waiting: tuple[str, ...] = ()  # the branches that nobody has resolved
    links: tuple[LinkRecord, ...] = ()
    shares: tuple[ShareRecord, ...] = ()  # told to the owner alone
    feedback: tuple[FeedbackRecord, ...] = ()  # the user's own
    access: Access = "own"
    epoch: str = ""
    seq: Number = 0

    @property
    def head(self) -> Rev:
        return self.trunk[-1]

    @property
    def revs(self) -> dict[str, Rev]:
        return {one.rev: one for one in (*self.branches, *self.trunk)}


def fields_of(snapshot: Fields) -> dict[str, Any]:
    """What a stored revision says. `superseded` follows from links, which each machine has."""
    said = {name: value for name, value in snapshot.items() if name not in LOCAL_FIELDS}
    if said.get("state") == "superseded":
        said["state"] = "active"
    return said


def changes_between(old: Fields, new: Fields) -> dict[str, Any]:
    return {name: value for name, value in new.items() if name not in old or old[name] != value}
