"""Sync rules on plain values: precedence, merging and conflicts."""

from __future__ import annotations

from typing import Any

import msgspec

from trivet.store.records import Bundle, Rev, ShareRecord
from trivet.store.relational.tables.sync_bundles import head_digests
from trivet.sync import core
from trivet.sync.laptop_state import with_pending_edits
from trivet.sync.messages import Acks, Op, OtherEpoch, Page, Place

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


def rev(
    name: str, base: str | None = None, number: int = 0, author: str = "ana", **fields: Any
) -> Rev:
    values = {"content": "first", "title": None, "state": "active", **fields}
    return Rev(
        rev=name, base=base, author=author, at="", action="edit", fields=values, number=number
    )


def edit(name: str, base: str, **fields: Any) -> Op:
    return Op(op=f"op-{name}", kind="edit", id=ID, rev=name, base=base, fields=fields)


HELD = Bundle(id=ID, owner="ana", trunk=(rev("r1", number=1), rev("r2", "r1", 2, content="second")))


def test_edit_of_head_becomes_next_revision() -> None:
    result, new = core.edit(HELD, edit("r3", "r2", content="third"), "ana")
    assert (result, new.head.fields["content"], new.head.number) == ("applied", "third", 3)
    assert core.edit(new, edit("r3", "r2", content="third"), "ana") == ("already", new)


def test_edits_of_different_fields_merge() -> None:
    result, new = core.edit(HELD, edit("r3", "r1", title="a title"), "bo")
    assert result == "merged"
    assert (new.head.fields["content"], new.head.fields["title"]) == ("second", "a title")


def test_conflict_keeps_head_and_branches_whole_edit() -> None:
    result, new = core.edit(HELD, edit("r3", "r1", content="other", title="a title"), "bo")
    assert (result, new.head, new.waiting) == ("branched", HELD.head, ("r3",))
    [branch] = new.branches
    assert (branch.fields["content"], branch.fields["title"], branch.author) == (
        "other",
        "a title",
        "bo",
    )
    settled = core.resolve(new, Op(op="o", kind="resolve", id=ID, revs=("r3",)))[1]
    assert settled.waiting == ()
    assert settled.branches == new.branches


def test_unknown_base_conflicts_unless_content_is_equal() -> None:
    assert core.edit(HELD, edit("r3", "unknown", content="other"), "bo")[0] == "branched"
    assert core.edit(HELD, edit("r3", "unknown", content="second"), "bo")[0] == "merged"


def test_same_id_and_content_created_twice_is_one_memory() -> None:
    made = Op(op="o", kind="create", id=ID, rev="r9", fields=rev("r1", created_at="then").fields)
    result, new = core.create(HELD, made, "ana")
    assert (result, new.waiting, [one.rev for one in new.branches]) == ("branched", (), ["r9"])
    other = Op(op="o", kind="create", id=ID, rev="r9", fields=rev("r1", content="other").fields)
    assert core.create(HELD, other, "ana")[1].waiting == ("r9",)


def test_operations_require_matching_access() -> None:
    def refused(op: Op, user: str, access: str | None) -> bool:
        return core.refusal(HELD, op, user, access) is not None

    change = edit("r3", "r2", content="x")
    assert not refused(change, "ana", "own")
    assert not refused(change, "bo", "write")
    assert refused(change, "bo", "read")
    assert refused(change, "bo", None)
    assert refused(edit("r3", "r2", state="deleted"), "bo", "write")
    share = Op(op="o", kind="share", id=ID, share=ShareRecord(grantee="cleo", permission="read"))
    assert refused(share, "bo", "write")


def test_restored_server_recovers_lost_edits() -> None:
    put_back = Bundle(
        id=ID,
        owner="ana",
        trunk=HELD.trunk[:1],
        shares=(ShareRecord(grantee="bo", permission="read"),),
    )
    decided = core.heal(
        put_back, Bundle(id=ID, owner="ana", trunk=HELD.trunk, seq=9), "ana", False, 0
    )
    assert decided is not None
    assert [one.rev for one in decided[1].trunk] == ["r1", "r2"]
    assert decided[1].shares == ()  # the owner had revoked it
    changed = Bundle(id=ID, owner="ana", trunk=(HELD.trunk[0], rev("r8", "r1", 2, content="since")))
    decided = core.heal(changed, HELD, "ana", False, 0)
    assert decided is not None
    assert (decided[1].head.rev, decided[1].waiting) == ("r8", ("r2",))


def test_healed_no_op_edit_overwrites_nothing() -> None:
    """Edit r4 repeated r3.

    When the server has moved on, r3 becomes a branch and r4 adds nothing.
    """
    twice = (rev("r3", "r2", 3, content="third"), rev("r4", "r2", 4, content="third"))
    held = msgspec.structs.replace(HELD, trunk=(*HELD.trunk, rev("r5", "r2", 3, content="other")))
    decided = core.heal(
        held, msgspec.structs.replace(HELD, trunk=(*HELD.trunk, *twice)), "ana", False, 0
    )
    assert decided is not None
    healed = decided[1]
    assert (healed.head.fields["content"], healed.waiting) == ("other", ("r3",))
    assert [one.fields["content"] for one in healed.branches] == ["third"]
    assert healed.revs.keys() == {"r1", "r2", "r3", "r4", "r5"}


def test_healing_restores_no_revoked_share() -> None:
    def healed(taken: set[str], ended: tuple[str, ...] = ()) -> dict[str, str]:
        shares = (
            ShareRecord(grantee="bo", permission="write"),
            ShareRecord(grantee="cleo", permission="write"),
        )
        held = msgspec.structs.replace(HELD, shares=(ShareRecord(grantee="bo", permission="read"),))
        decided = core.heal(
            held, msgspec.structs.replace(HELD, shares=shares, seq=9), "ana", False, 0, taken, ended
        )
        assert decided is not None
        return {one.grantee: one.permission for one in decided[1].shares}

    assert healed(set()) == {"bo": "write", "cleo": "write"}
    assert healed({"bo", "cleo"}) == {"bo": "read"}
    assert healed(set(), ("bo",)) == {"cleo": "write"}


def test_writer_heals_only_own_edits() -> None:
    assert core.heal(None, HELD, "bo", True, 0) is None
    assert core.heal(HELD, HELD, "cleo", False, 0) is None
    trunk = (
        *HELD.trunk,
        rev("r3", "r2", 3, content="by ana"),
        rev("r4", "r3", 4, "bo", content="by bo", state="deleted"),
    )
    decided = core.heal(HELD, Bundle(id=ID, owner="ana", trunk=trunk, seq=9), "bo", True, 0)
    assert decided is not None
    assert {one.rev for one in (*decided[1].trunk, *decided[1].branches)} == {"r1", "r2", "r4"}
    assert decided[1].head.fields["state"] == "active"


def test_writer_heals_edit_with_renamed_base() -> None:
    edited = rev("r4", "named otherwise by a server before", 3, "bo", content="by bo")
    decided = core.heal(
        HELD, Bundle(id=ID, owner="ana", trunk=(*HELD.trunk, edited), seq=9), "bo", True, 0
    )
    assert decided is not None
    assert (decided[1].head.rev, decided[1].head.fields["content"]) == ("r4", "by bo")


def test_older_epochs_are_carried_until_confirmed() -> None:
    old = Bundle(id=ID, owner="ana", trunk=HELD.trunk)
    new = Bundle(id=ID, owner="ana", trunk=HELD.trunk[:1])
    assert core.merge_carried(old, new).revs.keys() == {"r1", "r2"}
    assert core.merge_carried(None, new) == new
    assert not core.is_confirmed(old, new)
    assert core.is_confirmed(new, old)


def test_healed_conflict_stays_open() -> None:
    """This holds even when the base has changed so that the edit would no longer conflict."""
    clashed = rev("r3", "r2", author="bo", content="other")
    known = msgspec.structs.replace(HELD, branches=(clashed,), waiting=("r3",))
    for user in ("ana", "bo"):
        decided = core.heal(HELD, known, user, True, 0)
        assert decided is not None
        assert (decided[1].head, decided[1].waiting) == (HELD.head, ("r3",))
    carried = core.merge_carried(known, HELD)
    assert (carried.trunk, carried.waiting) == (HELD.trunk, ("r3",))
    settled = msgspec.structs.replace(known, waiting=())
    assert core.merge_carried(settled, HELD).waiting == ()


def test_response_counts_only_for_current_place() -> None:
    here = Place(epoch="e", seq=5, top=9, mark="m")
    page = Page(start=5, place=Place(epoch="e", seq=7, top=9, mark="m"), more=False, items=())
    assert core.answer_counts(here, here, page)
    for elsewhere in (
        Place(epoch="f", seq=5, top=9, mark="m"),
        Place(epoch="e", seq=6, top=9, mark="m"),
    ):
        assert not core.answer_counts(elsewhere, here, page)
    assert not core.answer_counts(Place(epoch="e", seq=5, top=9, mark="other"), here, page)
    assert not core.answer_counts(here, here, OtherEpoch(epoch="e"))
    acks = Acks(place=Place(epoch="e", seq=12, top=12, mark="n"), acks=())
    assert core.advanced_place(here, acks) == Place(epoch="e", seq=5, top=12, mark="n")
    assert core.advanced_place(here, page).seq == 7


def test_pending_edits_stack_on_server_revisions() -> None:
    mine = rev("m1", "r1", content="mine", title="old title")
    stacked = with_pending_edits(
        (rev("r1", number=1), rev("r5", "r1", 2, title="theirs")), [(mine, {"content": "mine"})]
    )
    assert [(one.rev, one.number) for one in stacked] == [("r1", 1), ("r5", 2), ("m1", 3)]
    assert (stacked[-1].fields["content"], stacked[-1].fields["title"]) == ("mine", "theirs")


def test_digest_differs_only_for_changed_head() -> None:
    ours, theirs = (
        head_digests([(ID, "r1"), ("b", "r1")]),
        head_digests([("b", "r1"), (ID, "r2")]),
    )
    assert sum(ours[bucket] != theirs[bucket] for bucket in ours) == 1


def test_values_seen_by_writer_override_base() -> None:
    seen = {"content": core.value_mark("second, as another life of the server had it")}
    unaware = edit("r3", "r2", content="third")
    assert core.edit(HELD, unaware, "ana")[0] == "applied"
    assert core.edit(HELD, msgspec.structs.replace(unaware, was=seen), "ana")[0] == "branched"
    saw_it = edit("r3", "unknown", content="third")
    was = {"content": core.value_mark("second")}
    assert core.edit(HELD, msgspec.structs.replace(saw_it, was=was), "ana")[0] == "merged"
