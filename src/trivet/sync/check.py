"""What both sides demand of what they are told before any of it is written: the other may be broken, or a stranger."""

from __future__ import annotations

import msgspec

from trivet.clock import parse_time
from trivet.errors import InvalidInput, StoreError
from trivet.ids import check_id
from trivet.store.relational.bundles import memory_of
from trivet.store.sync_records import KNOWN_FIELDS, Bundle, Fields
from trivet.sync.messages import Item, Op, Outside

MOST_NUMBER = 2**63 - 1
# What a revision may say in fields that this Trivet does not know: as much as in the one that it knows best.
MOST_UNKNOWN_BYTES = 32 * 2**10


def check_item(item: Item | None) -> None:
    """That it names memories as Trivet does, and that a memory's history is one."""
    try:
        for id in item.ids if isinstance(item, Outside) else (item.id,) if item is not None else ():
            check_id(id)
    except InvalidInput as error:
        raise StoreError(f"The server named a memory as Trivet does not: {error} Nothing was taken in.") from None
    if isinstance(item, Bundle):
        wrong = fault_of(item) or _unreadable(item)
        if wrong:
            raise StoreError(f"The server told the memory {item.id} {wrong}. Nothing was taken in.")


def _unreadable(bundle: Bundle) -> str | None:
    try:
        for rev in (bundle.head, *bundle.branches):
            memory_of(bundle.id, bundle.owner, rev)
    except msgspec.ValidationError as error:
        return f"in a way that cannot be read here ({error}). Is its Trivet newer than this one?"
    return None


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
        wrong = "that is another than it names" if op.bundle.id != op.id else fault_of(op.bundle)
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
    if not can_be_kept(fields):
        raise InvalidInput("A revision says a number that no store can keep.")
    unknown = {name: value for name, value in fields.items() if name not in KNOWN_FIELDS}
    if len(msgspec.json.encode(unknown)) > MOST_UNKNOWN_BYTES:
        raise InvalidInput("A revision says more in fields of another Trivet than this server keeps.")


def can_be_kept(fields: Fields) -> bool:
    """Whether all its numbers are of 64 bits, and those that stand in columns too."""
    source = fields.get("source")
    lines = source.values() if isinstance(source, dict) else ()
    if any(isinstance(line, int) and not 0 <= line <= MOST_NUMBER for line in lines):
        return False
    try:
        msgspec.json.encode(fields)
    except (OverflowError, ValueError):
        return False
    return True


def fault_of(bundle: Bundle) -> str | None:
    """What is wrong with a history, or None."""
    if [one.number for one in bundle.trunk] != list(range(1, len(bundle.trunk) + 1)) or not bundle.trunk:
        return "without a history from its first revision on"
    if any(one.number for one in bundle.branches):
        return "with a branch that stands in its history"
    names = [one.rev for one in (*bundle.trunk, *bundle.branches)]
    if len(set(names)) != len(names):
        return "with a revision twice"
    if not all(map(can_be_kept, (one.fields for one in (*bundle.trunk, *bundle.branches)))):
        return "with a number that no store can keep"
    return None if set(bundle.waiting) <= set(names) else "with a conflict that it does not have"
