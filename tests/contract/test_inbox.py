"""Proposals wait for their owner alone in every store, and repeated ones are recognized."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.stores import EARLY, Open, add, at_rest, memory
from trivet.common.clock import moment
from trivet.common.ids import new_id
from trivet.errors import Conflict, NotFound
from trivet.store.relational.store import RelationalStore as Store
from trivet.types import LOCAL, Proposal


def proposal(content: str, owner: str = LOCAL, created_at: str = EARLY) -> Proposal:
    return Proposal(
        id=new_id(), content=content, kind="decision", reason="a decision", tags=("x", "y"), owner=owner,
        created_at=moment(created_at),
    )  # fmt: skip


def test_proposal_round_trips(open_store: Open) -> None:
    made = proposal("We deploy on Tuesdays.")
    open_store().inbox.add(made, ["deploy"])
    assert open_store().inbox.get(made.id) == made


def test_newest_come_first_and_pages_know_the_total(store: Store) -> None:
    made = [
        proposal(f"Number {number}", created_at=f"2024-01-0{number}T00:00:00.000000Z")
        for number in (1, 2, 3)
    ]
    for one in made:
        store.inbox.add(one, [one.content])
    page = store.inbox.page("waiting", 2, 0)
    assert ([one.content for one in page.proposals], page.total) == (["Number 3", "Number 2"], 3)
    assert [one.content for one in store.inbox.page("waiting", 2, 2).proposals] == ["Number 1"]


def test_decided_proposals_leave_the_queue_and_are_recognized(store: Store) -> None:
    made = proposal("We deploy on Tuesdays.")
    store.inbox.add(made, ["deploy", "tuesday"])
    decided = store.inbox.decide(made.id, "rejected")
    assert (decided.state, decided.decided_at is not None) == ("rejected", True)
    assert store.inbox.page("waiting", 10, 0).total == 0
    same = store.inbox.same(["deploy", "tuesday"])
    assert same is not None
    assert same.state == "rejected"
    assert store.inbox.same(["deploy", "monday"]) is None


def test_only_waiting_proposals_are_rewritten(store: Store) -> None:
    made = proposal("We deploy on Tuesdays.")
    store.inbox.add(made, ["tuesday"])
    other = msgspec.structs.replace(
        made, content="We deploy on Mondays.", action="nothing", curated_at=moment(EARLY)
    )
    assert store.inbox.rewrite(other, ["monday"]) == other
    assert store.inbox.uncurated(10) == ()
    store.inbox.decide(made.id, "accepted", new_id())
    with pytest.raises(Conflict, match="no longer waiting"):
        store.inbox.rewrite(made, ["tuesday"])


def test_each_user_has_a_separate_inbox(store: Store) -> None:
    for user in ("ana", "bo"):
        store.accounts.add_user(user, "writer")
    ana, bo = store.seen_by("ana"), store.seen_by("bo")
    made = proposal("Ana's secret plan.", owner="ana")
    ana.inbox.add(made, ["plan"])
    assert ana.inbox.page("waiting", 10, 0).total == 1
    assert bo.inbox.page("waiting", 10, 0).total == 0
    assert (bo.inbox.same(["plan"]), bo.inbox.latest(10), bo.inbox.uncurated(10)) == (None, (), ())
    with pytest.raises(NotFound):
        bo.inbox.get(made.id)
    with pytest.raises(NotFound):
        bo.inbox.decide(made.id, "rejected")
    assert ana.inbox.get(made.id).state == "waiting"


def test_purge_erases_the_proposals_text(open_store: Open, tmp_path: Path) -> None:
    store = open_store()
    kept = memory("The heron nests behind the boathouse.")
    add(store, kept)
    made = proposal("The heron nests behind the boathouse, they said.")
    store.inbox.add(made, ["heron"])
    store.inbox.decide(made.id, "accepted", kept.id)
    store.memories.purge(kept.id)
    with pytest.raises(NotFound):
        store.inbox.get(made.id)
    store.close()
    assert b"boathouse" not in at_rest(tmp_path)


def test_daily_token_budget_is_spent_once(open_store: Open) -> None:
    store, other = open_store(), open_store()
    assert store.inbox.spend(600, 1000)
    assert not other.inbox.spend(600, 1000), "the budget is shared"
    assert other.inbox.spend(400, 1000)
    assert store.inbox.spent() == 1000
    assert store.graph.spent() == 0, "the graph has a separate budget"
