"""The messages between a laptop and its server, and their checks.

A newer side may add fields, which an older one ignores. The other side may be broken or hostile.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from trivet.common.clock import parse_time
from trivet.common.ids import check_id
from trivet.errors import InvalidInput
from trivet.store.records import (
    KNOWN_FIELDS,
    Bundle,
    FeedbackRecord,
    Fields,
    LinkRecord,
    Number,
    ShareRecord,
)

OLDEST_PROTOCOL = 1
NEWEST_PROTOCOL = 1

OpKind = Literal[
    "create", "edit", "scrub", "purge", "share", "unshare", "link", "unlink", "share_tag",
    "unshare_tag", "resolve", "heal", "feedback",
]  # fmt: skip
OP_KINDS = frozenset(get_args(OpKind))
Result = Literal["applied", "merged", "branched", "already", "purged", "gone", "refused", "later"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A laptop's place in the server's numbering; `top` and `mark` name the latest number seen."""

    epoch: str | None = None
    seq: Number = 0
    top: Number = 0
    mark: str = ""
    sensitive: bool = False  # whether the laptop accepts sensitive memories
    scopes: tuple[str, ...] = ()  # the scopes it holds; none: all
    # a full pull needs no earlier notices
    full: bool = False


class Op(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change made on a laptop; repeating one has no effect."""

    op: str
    kind: str  # one of `OP_KINDS`, or one that only a newer Trivet knows
    id: str
    rev: str | None = None
    base: str | None = None
    at: str = ""
    fields: Fields = {}  # an edit has only the fields that it changes
    was: dict[str, str] = {}  # hashes of these fields' previous values
    action: str = ""
    share: ShareRecord | None = None
    link: LinkRecord | None = None
    revs: tuple[str, ...] = ()  # the branches that a resolution settles
    scrubbed: dict[str, Fields] = {}  # the revisions that a redaction rewrote
    bundle: Bundle | None = None  # the memory that a heal restores
    ended: tuple[str, ...] = ()  # the users with whom the owner stopped sharing it
    feedback: tuple[FeedbackRecord, ...] = ()  # the user's present feedback


class Gone(msgspec.Struct, frozen=True, kw_only=True, tag="gone"):
    """A memory that the user may not read."""

    id: str
    seq: Number = 0


class Purged(msgspec.Struct, frozen=True, kw_only=True, tag="purged"):
    """A purged memory; other machines recognize its first revision."""

    id: str
    owner: str
    seq: Number = 0
    first_rev: str | None = None


class Withheld(msgspec.Struct, frozen=True, kw_only=True, tag="withheld"):
    """A sensitive memory of the user, without its text; `redacted` revisions lost secrets."""

    id: str
    seq: Number = 0
    redacted: tuple[str, ...] = ()
    shares: tuple[ShareRecord, ...] | None = None
    links: tuple[LinkRecord, ...] | None = None


class Outside(msgspec.Struct, frozen=True, kw_only=True, tag="outside"):
    """Unchanged memories outside the scopes; a laptop keeps one if only it holds a secret of it."""

    ids: tuple[str, ...]
    redacted: tuple[str, ...] = ()


Item = Bundle | Gone | Purged | Withheld | Outside


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    op: str
    result: Result
    id: str  # the server may have assigned another id
    item: Item | None = None
    reason: str = ""


class Acks(msgspec.Struct, frozen=True, kw_only=True, tag="acks"):
    place: Place
    acks: tuple[Ack, ...]
    # If an operation was about a tag.
    tags: tuple[ShareRecord, ...] | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True, tag="page"):
    """The changes after `start` up to the place's number."""

    start: Number
    place: Place
    more: bool
    items: tuple[Item, ...]
    tags: tuple[ShareRecord, ...] | None = None  # on the last page


class OtherEpoch(msgspec.Struct, frozen=True, kw_only=True, tag="epoch"):
    """A server that was restored or moved, so its numbers start anew.

    `again`: it deleted notices that the laptop did not read. `known`: it lost nothing that the
    laptop saw, so the laptop goes on.
    """

    epoch: str
    again: bool = False
    known: bool = False


Answer = Acks | Page | OtherEpoch


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    oldest_protocol: Number
    newest_protocol: Number
    user: str
    sensitive: bool
    vectors: bool = False  # whether it sends vectors


class News(msgspec.Struct, frozen=True, kw_only=True):
    known: str


class VectorsRequest(msgspec.Struct, frozen=True, kw_only=True):
    protocol: Number = NEWEST_PROTOCOL
    identity: str
    preparation: Number
    ids: tuple[str, ...]


class Embedded(msgspec.Struct, frozen=True, kw_only=True, tag="embedded"):
    """A memory's passages and vectors, as little-endian half-precision numbers."""

    id: str
    rev: str  # the revision that was embedded
    spans: tuple[tuple[Number, Number], ...]
    vectors: bytes
    sum: str


class VectorsSummary(msgspec.Struct, frozen=True, kw_only=True, tag="told"):
    """The last line; `identity` is empty if the server embeds differently."""

    identity: str
    count: Number


class PushRequest(msgspec.Struct, frozen=True, kw_only=True):
    protocol: Number
    place: Place
    ops: tuple[Op, ...]


class PullRequest(msgspec.Struct, frozen=True, kw_only=True):
    protocol: Number
    place: Place
    limit: Number = 500


MAX_INTEGER = 2**63 - 1
# Bytes of unknown fields in a revision: as many as its text may have.
MAX_UNKNOWN_BYTES = 32 * 2**10


def check_op(op: Op) -> None:
    """Raise if an operation is malformed: any holder of a key can send one."""
    lacks = next((name for name in _NEEDS.get(op.kind, ()) if getattr(op, name) is None), None)
    if lacks:
        raise InvalidInput(f"{op.kind}: `{lacks}` is missing. Nothing was written.")
    if op.kind in ("create", "edit") or op.rev is not None:
        _check_rev(op.rev or "", op.fields)
    if op.link is not None and op.link.created_at:
        parse_time(op.link.created_at, "created_at")
    if op.bundle is not None:
        wrong = "has another id" if op.bundle.id != op.id else bundle_fault(op.bundle)
        if wrong:
            raise InvalidInput(f"{op.kind}: its memory {wrong}. Nothing was written.")
        for one in op.bundle.revs.values():
            _check_rev(one.rev, one.fields)


_NEEDS = {
    **dict.fromkeys(("create", "edit"), ("rev",)),
    **dict.fromkeys(("share", "unshare", "share_tag", "unshare_tag"), ("share",)),
    **dict.fromkeys(("link", "unlink"), ("link",)),
    "heal": ("bundle",),
}


def _check_rev(rev: str, fields: Fields) -> None:
    check_id(rev, "rev")
    if not is_storable(fields):
        raise InvalidInput("A revision holds a number of more than 64 bits. Nothing was written.")
    unknown = {name: value for name, value in fields.items() if name not in KNOWN_FIELDS}
    if len(msgspec.json.encode(unknown)) > MAX_UNKNOWN_BYTES:
        raise InvalidInput(
            "A revision has more data in unknown fields than this server stores. Nothing was "
            "written."
        )


def is_storable(fields: Fields) -> bool:
    """Return whether all numbers fit 64 bits and their columns."""
    source = fields.get("source")
    lines = source.values() if isinstance(source, dict) else ()
    if any(isinstance(line, int) and not 0 <= line <= MAX_INTEGER for line in lines):
        return False
    try:
        msgspec.json.encode(fields)
    except (OverflowError, ValueError):
        return False
    return True


def bundle_fault(bundle: Bundle) -> str | None:
    """Return what is wrong with a history, or None."""
    if [one.number for one in bundle.trunk] != list(
        range(1, len(bundle.trunk) + 1)
    ) or not bundle.trunk:
        return "has no history from its first revision on"
    if any(one.number for one in bundle.branches):
        return "has a branch inside its history"
    names = [one.rev for one in (*bundle.trunk, *bundle.branches)]
    if len(set(names)) != len(names):
        return "has a revision twice"
    if not all(map(is_storable, (one.fields for one in (*bundle.trunk, *bundle.branches)))):
        return "holds a number of more than 64 bits"
    return None if set(bundle.waiting) <= set(names) else "has a conflict on an unknown revision"
