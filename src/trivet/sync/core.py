"""The rules of sync, without input or output.

Each rule is a function, so that tests can switch one off and must then find something lost, exposed
or overwritten. A `Bundle` is a memory with its history. Clocks decide nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import msgspec

from trivet.secrets.masking import Name, fill_placeholders, placeholder_names
from trivet.store.records import (
    OWNER_ONLY_FIELDS,
    Bundle,
    Fields,
    Rev,
    ShareRecord,
    changes_between,
)
from trivet.sync.messages import Acks, Answer, Op, OtherEpoch, Page, Place, Result

Decision = tuple[Result, Bundle]

NO_MARKS: Mapping[str, str] = MappingProxyType({})
_CREATED_AT = "created_at"


# ---- what a server decides


def create(held: Bundle | None, op: Op, user: str) -> Decision:
    """Create a memory; under an existing id, equal content is the same memory, other a conflict."""
    rev = _rev_of(op, user, op.fields)
    if held is None:
        return "applied", Bundle(
            id=op.id, owner=user, trunk=(msgspec.structs.replace(rev, number=1),)
        )
    if rev.rev in held.revs:
        return "already", held
    same = any(has_same_content(one.fields, rev.fields) for one in held.trunk)
    return "branched", branched(held, rev, waits=not same)


def has_same_content(one: Fields, other: Fields) -> bool:
    return {**one, _CREATED_AT: None} == {**other, _CREATED_AT: None}


def edit(held: Bundle, op: Op, user: str) -> Decision:
    """Apply an edit: next revision on the head, a merge if no field conflicts, or a branch."""
    if op.rev in held.revs:
        return "already", held
    head, base = held.head, held.revs.get(op.base or "")
    if not clashes(head.fields, base.fields if base else None, op.fields, op.was):
        result: Result = "applied" if base is not None and base.rev == head.rev else "merged"
        return result, advanced(held, _rev_of(op, user, {**head.fields, **op.fields}))
    whole = {**(base or head).fields, **op.fields}
    return "branched", branched(held, _rev_of(op, user, whole), waits=True)


def clashes(
    head: Fields, base: Fields | None, patch: Fields, was: Mapping[str, str] = NO_MARKS
) -> bool:
    """Return whether someone else changed, or may have changed, the edited fields to other values.

    `was`, hashes of what the writer saw, counts more than the base: a restored server may have
    another.
    """

    def changed(name: str) -> bool:
        if name in was:
            return value_mark(head.get(name)) != was[name]
        return base is None or head.get(name) != base.get(name)

    return any(changed(name) and head.get(name) != value for name, value in patch.items())


def value_mark(value: object) -> str:
    """Return a short hash that does not reveal the value."""
    return hashlib.blake2b(msgspec.json.encode(value), digest_size=8).hexdigest()


def refusal(held: Bundle | None, op: Op, user: str, access: str | None) -> str | None:
    """Return why a user may not do this, or None; `access` is None if they may not read it."""
    if op.kind == "purge":
        return (
            None
            if held is None or held.owner == user
            else f"It belongs to {held.owner}; only they can purge it."
        )
    if op.kind in ("create", "heal"):
        return None
    if held is None or access is None:
        return "This memory does not exist or is not shared with you."
    if op.kind in ("share", "unshare", "scrub") and held.owner != user:
        return f"It belongs to {held.owner}; only they can do this."
    if op.kind in ("edit", "resolve") and access == "read":
        return f"It belongs to {held.owner} and is shared with you read-only."
    if op.kind == "edit" and held.owner != user and OWNER_ONLY_FIELDS & op.fields.keys():
        return (
            f"Only its owner {held.owner} can change its tags, scope, sensitivity, state or times."
        )
    return None


def resolve(held: Bundle, op: Op) -> Decision:
    return "applied", msgspec.structs.replace(
        held, waiting=tuple(one for one in held.waiting if one not in op.revs)
    )


def scrub(held: Bundle, op: Op) -> Decision:
    def clean(rev: Rev) -> Rev:
        return msgspec.structs.replace(rev, fields={**rev.fields, **op.scrubbed.get(rev.rev, {})})

    trunk, branches = tuple(map(clean, held.trunk)), tuple(map(clean, held.branches))
    return "applied", msgspec.structs.replace(held, trunk=trunk, branches=branches)


def redacted_like(held: Bundle, op: Op) -> Bundle:
    """Remove secrets that the owner, when sending a known revision again, has removed from it.

    They are removed from every revision with the same value in that field.
    """
    rev = held.revs.get(op.rev or "")
    if rev is None or not op.fields:
        return held
    clean = {
        name: value
        for name, value in op.fields.items()
        if name in rev.fields
        and _placeholders({name: value}) > _placeholders({name: rev.fields[name]})
    }
    scrubbed = {
        one.rev: {
            name: value for name, value in clean.items() if one.fields.get(name) == rev.fields[name]
        }
        for one in held.revs.values()
    }
    found: dict[str, Fields] = {name: fields for name, fields in scrubbed.items() if fields}
    return scrub(held, Op(op=op.op, kind="scrub", id=held.id, scrubbed=found))[1] if found else held


def redacted(bundle: Bundle) -> tuple[str, ...]:
    """Return the revisions in which a placeholder replaces a secret."""
    return tuple(name for name, rev in bundle.revs.items() if _placeholders(rev.fields))


def is_redacted(clean: Fields, raw: Fields, values: Mapping[Name, str]) -> bool:
    return _with_values(clean, values) == _with_values(raw, values) and _placeholders(
        clean
    ) > _placeholders(raw)


def _placeholders(fields: Fields) -> int:
    return len(placeholder_names(msgspec.json.encode(fields).decode()))


def _with_values(fields: Any, values: Mapping[Name, str]) -> Any:
    if isinstance(fields, str):
        return fill_placeholders(fields, values)
    if isinstance(fields, Mapping):
        return {name: _with_values(value, values) for name, value in fields.items()}
    if isinstance(fields, list | tuple):
        return [_with_values(value, values) for value in fields]
    return fields


def heal(
    held: Bundle | None,
    brought: Bundle,
    user: str,
    shared: bool,
    healed: int,
    taken: Set[str] = frozenset(),
    ended: Sequence[str] = (),
) -> Decision | None:
    """Restore what a restored server lacks of a memory, from a laptop's copy.

    Return None if the user may not. Each missing revision is replayed as an edit. Only the owner
    restores shares, and never for users who lost access according to the server (`taken`) or the
    laptop (`ended`).
    """
    own = brought.owner == user
    if held is None:
        shares = tuple(one for one in brought.shares if one.grantee not in ended)
        return (
            ("applied", msgspec.structs.replace(brought, links=(), shares=shares)) if own else None
        )
    if held.owner != brought.owner or not (own or shared):
        return None
    if not own:
        return "applied", _own_revisions(held, brought, user)
    shares = held.shares
    if brought.seq > healed:
        forward = _is_prefix(brought.trunk, held.trunk)
        shares = (
            _restored_shares(held.shares, brought.shares, taken)
            if forward
            else _still_shared(held.shares, brought.shares)
        )
    shares = tuple(one for one in shares if one.grantee not in ended)
    return "applied", msgspec.structs.replace(_with_missing_revisions(held, brought), shares=shares)


def _own_revisions(held: Bundle, brought: Bundle, user: str) -> Bundle:
    for before, rev in pairwise(brought.trunk):
        if rev.author == user:
            base = brought.revs.get(rev.base or "", before)
            patch = changes_between(base.fields, rev.fields)
            allowed = {
                name: value for name, value in patch.items() if name not in OWNER_ONLY_FIELDS
            }
            held = replayed(held, rev, base, allowed)
    return _with_branches(
        held, [rev for rev in brought.branches if rev.author == user], brought.waiting
    )


def _with_missing_revisions(held: Bundle, brought: Bundle) -> Bundle:
    before: Rev | None = None
    for rev in brought.trunk:
        held = replayed(
            held, rev, before, changes_between(before.fields if before else {}, rev.fields)
        )
        before = rev
    return _with_branches(held, brought.branches, brought.waiting)


def _with_branches(held: Bundle, branches: Sequence[Rev], waiting: Sequence[str]) -> Bundle:
    for rev in branches:
        if rev.rev not in held.revs:
            held = branched(held, rev, waits=rev.rev in waiting)
    return held


def replayed(held: Bundle, rev: Rev, base: Rev | None, patch: Fields) -> Bundle:
    """Add a revision of another history as the next one, or as a branch if it conflicts."""
    if rev.rev in held.revs:
        return held
    if (
        base is not None
        and base.rev in held.revs
        and not clashes(held.head.fields, base.fields, patch)
    ):
        return advanced(held, msgspec.structs.replace(rev, fields={**held.head.fields, **patch}))
    return branched(held, rev, waits=True)


def _is_prefix(whole: Sequence[Rev], start: Sequence[Rev]) -> bool:
    return [one.rev for one in whole[: len(start)]] == [one.rev for one in start]


def _still_shared(
    held: Sequence[ShareRecord], brought: Sequence[ShareRecord]
) -> tuple[ShareRecord, ...]:
    return tuple(share for share in held if share in brought)


def _restored_shares(
    held: Sequence[ShareRecord], brought: Sequence[ShareRecord], taken: Set[str]
) -> tuple[ShareRecord, ...]:
    """Return the laptop's shares, but users who lost access since get no more than they have."""
    now = {one.grantee: one for one in held}

    def narrowed(one: ShareRecord) -> ShareRecord | None:
        known = now.get(one.grantee)
        if one.grantee not in taken or known is None:
            return None if one.grantee in taken else one
        return known if known.permission == "read" else one

    return tuple(share for share in map(narrowed, brought) if share is not None)


def advanced(held: Bundle, rev: Rev) -> Bundle:
    following = msgspec.structs.replace(rev, number=held.head.number + 1)
    return msgspec.structs.replace(held, trunk=(*held.trunk, following))


def branched(held: Bundle, rev: Rev, waits: bool) -> Bundle:
    """Add a branch: the head stays, and recall finds both texts."""
    branch = msgspec.structs.replace(rev, number=0)
    waiting = (*held.waiting, rev.rev) if waits else held.waiting
    return msgspec.structs.replace(held, branches=(*held.branches, branch), waiting=waiting)


def _rev_of(op: Op, user: str, fields: Fields) -> Rev:
    assert op.rev is not None, "checked when the operation came in"
    return Rev(rev=op.rev, base=op.base, author=user, at=op.at, action=op.action, fields=fields)


# ---- what a laptop decides


def answer_counts(standing: Place, asked: Place, answer: Answer) -> bool:
    """Return whether the laptop still stands exactly where it asked.

    If not, another process or answer moved it, or the server was restored in between. It asks
    again.
    """
    if asked != standing:
        return False
    if isinstance(answer, OtherEpoch):
        return answer.again or answer.epoch != standing.epoch
    return standing.epoch is None or answer.place.epoch == standing.epoch


def is_newer(epoch: str | None, seq: int, bundle: Bundle) -> bool:
    """Return whether a bundle is newer than what is known; another epoch always counts as newer."""
    return bundle.epoch != epoch or bundle.seq > seq


def outside_epoch(epoch: str | None) -> str:
    """Return the epoch of a copy outside the scopes that stays until its changes are sent.

    A full pull must leave it alone, but its number may be of a lost server: as another epoch, it
    never holds back newer data.
    """
    return f"outside {epoch or ''}"


def advanced_place(standing: Place, answer: Acks | Page) -> Place:
    """Return the place after an answer; only a page advances the reading."""
    place = answer.place
    seq = place.seq if isinstance(answer, Page) else standing.seq
    return msgspec.structs.replace(
        standing, epoch=place.epoch, seq=seq, top=place.top, mark=place.mark
    )


def continued_place(standing: Place, epoch: str, full: bool) -> Place:
    """Return the place in the new epoch of a server that lost nothing; a full pull starts again."""
    return msgspec.structs.replace(standing, epoch=epoch, seq=0 if full else standing.seq)


def in_scopes(scope: str, scopes: Sequence[str]) -> bool:
    """Return whether a scope is one of these or below one; none means all."""
    return not scopes or any(scope == one or scope.startswith(f"{one}/") for one in scopes)


def merge_carried(old: Bundle | None, new: Bundle, waits: bool = False) -> Bundle:
    """Return what a restored server may lack, including older epochs' history.

    While `old` waits to be sent, its shares win: those pulled since come from the backup.
    """
    if old is None:
        return new
    if waits:
        shares = (
            old.shares
            if _is_prefix(old.trunk, new.trunk)
            else _still_shared(new.shares, old.shares)
        )
        new = msgspec.structs.replace(new, shares=shares, seq=max(old.seq, new.seq))
    longer, other = (new, old) if old.head.rev in new.revs else (old, new)
    known = longer.revs
    missing = tuple(
        msgspec.structs.replace(rev, number=0)
        for rev in other.revs.values()
        if rev.rev not in known
    )
    settled = {rev.rev for rev in other.branches} - set(other.waiting)
    waiting = (*longer.waiting, *(rev.rev for rev in missing if rev.rev not in settled))
    return msgspec.structs.replace(longer, branches=(*longer.branches, *missing), waiting=waiting)


def is_confirmed(brought: Bundle, bundle: Bundle) -> bool:
    return brought.revs.keys() <= bundle.revs.keys()


def may_heal(bundle: Bundle, user: str) -> bool:
    return bundle.owner == user or any(rev.author == user for rev in bundle.revs.values())


def is_withheld(bundle: Bundle, sensitive: bool) -> bool:
    """Return whether the server has it as sensitive, though that is no longer allowed."""
    return not sensitive and bool(bundle.head.fields.get("sensitive"))


def edits_of(bundle: Bundle, user: str) -> list[tuple[Rev, Fields]]:
    before = {rev.rev: last for last, rev in pairwise(bundle.trunk)}
    before |= {rev.rev: bundle.revs.get(rev.base or "", bundle.trunk[0]) for rev in bundle.branches}
    own = [rev for rev in bundle.revs.values() if rev.author == user]
    return [
        (rev, changes_between(before[rev.rev].fields if rev.rev in before else {}, rev.fields))
        for rev in own
    ]


def missed_notices(place: Place, horizon: int) -> bool:
    """Return whether the server deleted notices (up to `horizon`) that the laptop has not read."""
    return 0 < place.seq < horizon and not (place.full and place.top >= horizon)
