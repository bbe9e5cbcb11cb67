"""The rules of sync, without input or output: what a server makes of an operation, a laptop of an answer.

Each rule is a function of its own, so that the tests can switch one off and must then find something lost, shown or
overwritten. A memory and its history is a `Bundle`; times and clocks decide nothing.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
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
# When a memory was made is not what it says.
_CREATED_AT = "created_at"
# The version of ids that were made from names, such as a vault's files.
_NAME_BASED_VERSION = 5


def reassigned_id(id: str, user: str) -> str:
    """What a user's memory is called where its id is somebody else's, or was made from what others may have too."""
    return str(uuid.uuid5(uuid.UUID(id), user))


def is_name_based_id(id: str) -> bool:
    """Another user may have made the same."""
    return uuid.UUID(id).version == _NAME_BASED_VERSION


# ---- what a server decides


def create(held: Bundle | None, op: Op, user: str) -> Decision:
    """The same id made on two machines of one user: equal text is the same memory, else a conflict."""
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
    """Made from the head: the next revision. From an older one: merged if it touches other fields, else a branch."""
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
    """Whether somebody else changed what this edit changes, to something else; or may have, if that is unknown.

    `was` are marks of what the writer saw. They count before the base, which a server that was put back may have put
    together otherwise than the one that the writer knew.
    """

    def changed(name: str) -> bool:
        if name in was:
            return value_mark(head.get(name)) != was[name]
        return base is None or head.get(name) != base.get(name)

    return any(changed(name) and head.get(name) != value for name, value in patch.items())


def value_mark(value: object) -> str:
    """Short, and tells nothing of the text."""
    return hashlib.blake2b(msgspec.json.encode(value), digest_size=8).hexdigest()


def refusal(held: Bundle | None, op: Op, user: str, access: str | None) -> str | None:
    """Why a user may not do this to a memory, or None. `access` is None where they may not read it."""
    if op.kind == "purge":
        return (
            None
            if held is None or held.owner == user
            else f"It belongs to {held.owner}, who alone can purge it."
        )
    if op.kind in ("create", "heal"):
        return None
    if held is None or access is None:
        return "There is no such memory for you here: it was never shared with you, or is not any longer."
    if op.kind in ("share", "unshare", "scrub") and held.owner != user:
        return f"It belongs to {held.owner}, who alone can do this."
    if op.kind in ("edit", "resolve") and access == "read":
        return f"It belongs to {held.owner} and is shared with you for reading."
    if op.kind == "edit" and held.owner != user and OWNER_ONLY_FIELDS & op.fields.keys():
        return f"Its owner {held.owner} alone can change the tags, scope, sensitivity, state or times of a memory."
    return None


def resolve(held: Bundle, op: Op) -> Decision:
    """Its branches are settled; they stay in the history."""
    return "applied", msgspec.structs.replace(
        held, waiting=tuple(one for one in held.waiting if one not in op.revs)
    )


def scrub(held: Bundle, op: Op) -> Decision:
    """The owner took secrets out of revisions, as if they had never said otherwise."""

    def clean(rev: Rev) -> Rev:
        return msgspec.structs.replace(rev, fields={**rev.fields, **op.scrubbed.get(rev.rev, {})})

    trunk, branches = tuple(map(clean, held.trunk)), tuple(map(clean, held.branches))
    return "applied", msgspec.structs.replace(held, trunk=trunk, branches=branches)


def redacted_like(held: Bundle, op: Op) -> Bundle:
    """The memory after its owner has said a revision that is here already, by now with secrets taken out of it.

    Whoever joins again, or redacts what still waits to be sent, says it so. They go out of every revision that has them
    in the same place.
    """
    rev = held.revs.get(op.rev or "")
    if rev is None or not op.fields:
        return held
    clean = {
        name: said
        for name, said in op.fields.items()
        if name in rev.fields
        and _placeholders({name: said}) > _placeholders({name: rev.fields[name]})
    }
    scrubbed = {
        one.rev: {
            name: said for name, said in clean.items() if one.fields.get(name) == rev.fields[name]
        }
        for one in held.revs.values()
    }
    found: dict[str, Fields] = {name: fields for name, fields in scrubbed.items() if fields}
    return scrub(held, Op(op=op.op, kind="scrub", id=held.id, scrubbed=found))[1] if found else held


def redacted(bundle: Bundle) -> tuple[str, ...]:
    """The names of the revisions that say a secret by its placeholder."""
    return tuple(name for name, rev in bundle.revs.items() if _placeholders(rev.fields))


def is_redacted(clean: Fields, raw: Fields, values: Mapping[Name, str]) -> bool:
    """Whether these are the same words, but for secrets with these values that were taken out of the first."""
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
    """After the server was put back, what a laptop still knows of a memory. None: it is not this user's to bring.

    What the server lacks is done again, each revision as the edit that it was: next, merged or beside. Shares are the
    owner's alone to bring back, and never widened by doubt: not for those from whom something was `taken` as far as the
    server knows, nor for those with whom it is `ended` as far as the laptop does.
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
    """One who may write brings back what they wrote themselves, as the edits that these were.

    What an edit was made from may have another name since, if the server was put back before: then it is what it
    followed on.
    """
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
    """With all that it lacks of a history, each revision as the edit that it was."""
    before: Rev | None = None
    for rev in brought.trunk:
        held = replayed(
            held, rev, before, changes_between(before.fields if before else {}, rev.fields)
        )
        before = rev
    return _with_branches(held, brought.branches, brought.waiting)


def _with_branches(held: Bundle, branches: Sequence[Rev], waiting: Sequence[str]) -> Bundle:
    """What lay beside the history lies beside it again: nobody but its people decides a clash."""
    for rev in branches:
        if rev.rev not in held.revs:
            held = branched(held, rev, waits=rev.rev in waiting)
    return held


def replayed(held: Bundle, rev: Rev, base: Rev | None, patch: Fields) -> Bundle:
    """With a revision of another history: next where it touches what nobody else changed, else beside."""
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
    """As they are brought; but whoever lost one since may do no more than they may now."""
    now = {one.grantee: one for one in held}

    def narrowed(one: ShareRecord) -> ShareRecord | None:
        known = now.get(one.grantee)
        if one.grantee not in taken or known is None:
            return None if one.grantee in taken else one
        return known if known.permission == "read" else one

    return tuple(share for share in map(narrowed, brought) if share is not None)


def advanced(held: Bundle, rev: Rev) -> Bundle:
    """With a next revision."""
    following = msgspec.structs.replace(rev, number=held.head.number + 1)
    return msgspec.structs.replace(held, trunk=(*held.trunk, following))


def branched(held: Bundle, rev: Rev, waits: bool) -> Bundle:
    """With a revision beside the history: the head stays, the words are kept and found."""
    beside = msgspec.structs.replace(rev, number=0)
    waiting = (*held.waiting, rev.rev) if waits else held.waiting
    return msgspec.structs.replace(held, branches=(*held.branches, beside), waiting=waiting)


def _rev_of(op: Op, user: str, fields: Fields) -> Rev:
    assert op.rev is not None, "checked when the operation came in"
    return Rev(rev=op.rev, base=op.base, author=user, at=op.at, action=op.action, fields=fields)


# ---- what a laptop decides


def answer_counts(standing: Place, asked: Place, answer: Answer) -> bool:
    """An answer counts only if the laptop still stands exactly where it asked.

    Else another process, or an answer that came sooner, has gone on meanwhile; or the server was put back in between,
    and answered a question that was asked before the laptop knew what the server has lost. It is asked again.
    """
    if asked != standing:
        return False
    if isinstance(answer, OtherEpoch):
        return answer.again or answer.epoch != standing.epoch
    return standing.epoch is None or answer.place.epoch == standing.epoch


def is_newer(epoch: str | None, seq: int, bundle: Bundle) -> bool:
    """Whether a bundle is later than what is known. Numbers of two epochs do not compare: the present one counts."""
    return bundle.epoch != epoch or bundle.seq > seq


def outside_epoch(epoch: str | None) -> str:
    """Noted for the epoch of a copy that is outside of the laptop's scopes and stays until what waits is sent.

    The server has it, so a full pull leaves it alone. But no number came with that, and the one that is known may be of
    a server that was lost: as if of another epoch, it keeps back nothing that comes.
    """
    return f"outside {epoch or ''}"


def advanced_place(standing: Place, answer: Acks | Page) -> Place:
    """Acks tell how far the server is, and only a page how far the laptop has read."""
    seq = answer.place.seq if isinstance(answer, Page) else standing.seq
    told = answer.place
    return msgspec.structs.replace(
        standing, epoch=told.epoch, seq=seq, top=told.top, mark=told.mark
    )


def continued_place(standing: Place, epoch: str, full: bool) -> Place:
    """In another epoch of a server that has all that the laptop saw. A full pull compares by epoch: it begins again."""
    return msgspec.structs.replace(standing, epoch=epoch, seq=0 if full else standing.seq)


def in_scopes(scope: str, scopes: Sequence[str]) -> bool:
    """A scope holds those below it, as `a` holds `a/b`. Without any named, all are meant."""
    return not scopes or any(scope == one or scope.startswith(f"{one}/") for one in scopes)


def with_pending_edits(
    trunk: Sequence[Rev], pending: Iterable[tuple[Rev, Fields]]
) -> tuple[Rev, ...]:
    """What the server said, then one's own edits on top, each saying what it changes and no more."""
    revs = list(trunk)
    for rev, patch in pending:
        last = revs[-1]
        if rev.rev not in {one.rev for one in revs}:
            fields = {**last.fields, **patch}
            revs.append(msgspec.structs.replace(rev, fields=fields, number=last.number + 1))
    return tuple(revs)


def merge_carried(old: Bundle | None, new: Bundle, waits: bool = False) -> Bundle:
    """What must be brought back to a server that was put back: the history of older epochs too, until it has it.

    While the old `waits` to be brought, so do its shares, by the rule of `heal`: what was pulled since is the backup's.
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
    """Owners and authors bring back what a server may lack; a reader's copy heals nothing."""
    return bundle.owner == user or any(rev.author == user for rev in bundle.revs.values())


def is_withheld(bundle: Bundle, sensitive: bool) -> bool:
    """Whether it is sensitive as the server told it, while both sides allowed that: it does not go there again."""
    return not sensitive and bool(bundle.head.fields.get("sensitive"))


def edits_of(bundle: Bundle, user: str) -> list[tuple[Rev, Fields]]:
    """What a user wrote in a memory, each edit with what it changes and no word of anybody else's that is known."""
    before = {rev.rev: last for last, rev in pairwise(bundle.trunk)}
    before |= {rev.rev: bundle.revs.get(rev.base or "", bundle.trunk[0]) for rev in bundle.branches}
    own = [rev for rev in bundle.revs.values() if rev.author == user]
    return [
        (rev, changes_between(before[rev.rev].fields if rev.rev in before else {}, rev.fields))
        for rev in own
    ]


def missed_notices(place: Place, horizon: int) -> bool:
    """Whether notices that a laptop has not read are forgotten: those up to the `horizon`.

    One that reads everything needs none of those from before it began; it has seen the server's numbers since.
    """
    return 0 < place.seq < horizon and not (place.full and place.top >= horizon)


def head_digests(heads: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A digest of the heads in each of 256 buckets, by the hash of the id: where two stores differ is soon found."""
    listed: dict[str, list[str]] = {}
    for id, rev in heads:
        listed.setdefault(hashlib.blake2b(id.encode(), digest_size=1).hexdigest(), []).append(
            f"{id} {rev}"
        )
    return {
        bucket: hashlib.blake2b("\n".join(sorted(lines)).encode(), digest_size=8).hexdigest()
        for bucket, lines in sorted(listed.items())
    }
