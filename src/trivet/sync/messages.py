"""What a laptop and its server say to each other. A newer side may add fields; an older one leaves them alone.

What both sides demand of what they are told before any of it is written: the other may be broken, or a stranger.
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

# The protocols that this Trivet speaks.
OLDEST_PROTOCOL = 1
NEWEST_PROTOCOL = 1

OpKind = Literal[
    "create", "edit", "scrub", "purge", "share", "unshare", "link", "unlink", "share_tag", "unshare_tag", "resolve",
    "heal", "feedback",
]  # fmt: skip
OP_KINDS = frozenset(get_args(OpKind))
Result = Literal["applied", "merged", "branched", "already", "purged", "gone", "refused", "later"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a laptop stands in the server's numbers. `top` and `mark` name the latest numbering that it knows."""

    epoch: str | None = None
    seq: Number = 0
    top: Number = 0
    mark: str = ""
    sensitive: bool = False  # whether the laptop takes sensitive memories
    scopes: tuple[str, ...] = ()  # all that it holds; without any, everything
    full: bool = False  # whether it reads everything from the beginning, and needs no notice of what was taken before


class Op(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change that a laptop made. It has a name of its own, so that a repeated one acts once.

    Its kind is one of `OP_KINDS`, or one that a newer Trivet knows.
    """

    op: str
    kind: str
    id: str
    rev: str | None = None
    base: str | None = None
    at: str = ""
    fields: Fields = {}  # an edit names those that it changes and no other
    was: dict[str, str] = {}  # marks of what these fields said before
    action: str = ""
    share: ShareRecord | None = None
    link: LinkRecord | None = None
    revs: tuple[str, ...] = ()  # the branches that a resolution settles
    scrubbed: dict[str, Fields] = {}  # the revisions that a redaction rewrote
    bundle: Bundle | None = None  # what a heal brings
    ended: tuple[str, ...] = ()  # with whom its owner shares that no longer
    feedback: tuple[FeedbackRecord, ...] = ()  # what the user says of the memory now


class Gone(msgspec.Struct, frozen=True, kw_only=True, tag="gone"):
    """The user may not read it any longer, or it was never theirs."""

    id: str
    seq: Number = 0


class Purged(msgspec.Struct, frozen=True, kw_only=True, tag="purged"):
    """Gone for ever. Its owner's machines may know it by another id, and then by its first revision."""

    id: str
    owner: str
    seq: Number = 0
    first_rev: str | None = None


class Withheld(msgspec.Struct, frozen=True, kw_only=True, tag="withheld"):
    """One's own, and sensitive: its words do not travel. Out of the revisions named secrets were taken.

    With whom it is shared, and what it is linked with, is told: else nobody could end on one machine what began on
    another. An older server tells neither.
    """

    id: str
    seq: Number = 0
    redacted: tuple[str, ...] = ()
    shares: tuple[ShareRecord, ...] | None = None
    links: tuple[LinkRecord, ...] | None = None


class Outside(msgspec.Struct, frozen=True, kw_only=True, tag="outside"):
    """These are the user's to read, and in none of the scopes that the laptop holds. Nothing happened to them.

    A laptop may keep one, which has a secret's value that nobody else has: out of the revisions named secrets were
    taken.
    """

    ids: tuple[str, ...]
    redacted: tuple[str, ...] = ()


Item = Bundle | Gone | Purged | Withheld | Outside


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    """How an operation went, and how its memory stands now."""

    op: str
    result: Result
    id: str  # it may have got another one
    item: Item | None = None
    reason: str = ""


class Acks(msgspec.Struct, frozen=True, kw_only=True, tag="acks"):
    place: Place
    acks: tuple[Ack, ...]
    tags: tuple[ShareRecord, ...] | None = (
        None  # the user's shared tags, where an operation was about one
    )


class Page(msgspec.Struct, frozen=True, kw_only=True, tag="page"):
    """A stretch of the feed: what changed after `start`, up to the place's number."""

    start: Number
    place: Place
    more: bool
    items: tuple[Item, ...]
    tags: tuple[ShareRecord, ...] | None = None  # the user's shared tags, with the last page


class OtherEpoch(msgspec.Struct, frozen=True, kw_only=True, tag="epoch"):
    """The server was put back or moved: its numbers begin anew. With `again`, it has forgotten too much since.

    With `known` the laptop saw nothing that the server has lost: it goes on from where it stands.
    """

    epoch: str
    again: bool = False
    known: bool = False


Answer = Acks | Page | OtherEpoch


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first answer: which protocols the server speaks, and as whom the key comes."""

    oldest_protocol: Number
    newest_protocol: Number
    user: str
    sensitive: bool
    vectors: bool = False  # whether it tells vectors


class News(msgspec.Struct, frozen=True, kw_only=True):
    """That there is some, and what to ask next time."""

    known: str


class VectorsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for the vectors of memories, as the laptop's model and its way to prepare texts would make them."""

    protocol: Number = NEWEST_PROTOCOL
    identity: str
    preparation: Number
    ids: tuple[str, ...]


class Embedded(msgspec.Struct, frozen=True, kw_only=True, tag="embedded"):
    """The passages of a memory and their vectors, half-precision numbers in little-endian order."""

    id: str
    rev: str  # the revision that they are of
    spans: tuple[tuple[Number, Number], ...]
    vectors: bytes
    sum: str


class VectorsSummary(msgspec.Struct, frozen=True, kw_only=True, tag="told"):
    """The last line. `identity` is empty where the server has another model, or prepares texts otherwise."""

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
# What a revision may say in fields that this Trivet does not know: as much as in the one that it knows best.
MAX_UNKNOWN_BYTES = 32 * 2**10


def check_op(op: Op) -> None:
    """What a server demands of an operation: a laptop may be broken too, or somebody who has a key."""
    lacks = next((name for name in _NEEDS.get(op.kind, ()) if getattr(op, name) is None), None)
    if lacks:
        raise InvalidInput(f"{op.kind}: it lacks its {lacks}.")
    if op.kind in ("create", "edit") or op.rev is not None:
        _check_rev(op.rev or "", op.fields)
    if op.link is not None and op.link.created_at:
        parse_time(op.link.created_at, "created_at")
    if op.bundle is not None:
        wrong = (
            "that is another than it names" if op.bundle.id != op.id else bundle_fault(op.bundle)
        )
        if wrong:
            raise InvalidInput(f"{op.kind}: it brings a memory {wrong}.")
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
        raise InvalidInput("A revision says a number that no store can keep.")
    unknown = {name: value for name, value in fields.items() if name not in KNOWN_FIELDS}
    if len(msgspec.json.encode(unknown)) > MAX_UNKNOWN_BYTES:
        raise InvalidInput(
            "A revision says more in fields of another Trivet than this server keeps."
        )


def is_storable(fields: Fields) -> bool:
    """Whether all its numbers are of 64 bits, and those that stand in columns too."""
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
    """What is wrong with a history, or None."""
    if [one.number for one in bundle.trunk] != list(
        range(1, len(bundle.trunk) + 1)
    ) or not bundle.trunk:
        return "without a history from its first revision on"
    if any(one.number for one in bundle.branches):
        return "with a branch that stands in its history"
    names = [one.rev for one in (*bundle.trunk, *bundle.branches)]
    if len(set(names)) != len(names):
        return "with a revision twice"
    if not all(map(is_storable, (one.fields for one in (*bundle.trunk, *bundle.branches)))):
        return "with a number that no store can keep"
    return None if set(bundle.waiting) <= set(names) else "with a conflict that it does not have"
