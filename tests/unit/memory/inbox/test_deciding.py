"""Accepting, editing, and rejecting proposals, and what each stores or keeps."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from support.command_line import CommandLine
from support.store_fixtures import Opened
from trivet import Conflict, InvalidInput, NotFound, Trivet
from trivet.common.ids import new_id
from trivet.errors import Forbidden
from trivet.memory.engine import Engine
from trivet.memory.propose import NearMemory
from trivet.types import Caller

propose = importlib.import_module(
    "trivet.memory.propose"
)  # The package exports a function with the same name.
PORT = "The staging database listens on port 6543."
OTHER = "The staging database listens on port 6544."


def proposed(trivet: Trivet, content: str, **more: str) -> str:
    made = trivet.inbox_propose(content, **more)  # type: ignore[arg-type]
    assert made.status == "waiting"
    assert made.id is not None
    return made.id


def test_accept_stores_a_memory(memory: Trivet) -> None:
    id = proposed(memory, PORT, kind="told", category="facts", source="/tmp/talk.jsonl")
    (accepted,) = memory.inbox_accept([id])
    stored = memory.get(str(accepted.stored))
    assert (stored.content, stored.confidence) == (PORT, 0.8)
    assert stored.source is not None
    assert stored.source.uri == "/tmp/talk.jsonl"
    assert memory.inbox_list().total == 0
    assert memory.inbox_accept([id]) == (accepted,), "accepting again is a no-op"
    assert memory.list().total == 1


def test_update_keeps_the_old_revision(memory: Trivet) -> None:
    old = memory.remember(PORT).id
    id = proposed(memory, "Staging: port 6544, user app.", action="update", memory=old)
    (accepted,) = memory.inbox_accept([id])
    assert accepted.stored == old
    assert [revision.memory.content for revision in memory.history(old)] == [
        PORT,
        "Staging: port 6544, user app.",
    ]


def test_supersession_keeps_the_old_memory(memory: Trivet) -> None:
    old = memory.remember(PORT).id
    made = memory.inbox_propose(OTHER)
    assert made.same_as == old, "the replaced memory was detected"
    (accepted,) = memory.inbox_accept([str(made.id)])
    assert memory.get(old).state == "superseded"
    assert [hit.id for hit in memory.recall("port of the staging database").hits] == [
        accepted.stored
    ]


def test_possible_update_is_proposed_as_supersession(memory: Trivet) -> None:
    old = memory.remember("We use feature flags for every change.").id
    made = memory.inbox_propose("We no longer use feature flags.")
    assert made.same_as == old
    assert "It may update that memory" in memory.inbox_show(str(made.id)).reason
    assert memory.get(old).state == "active", "nothing is linked before it is accepted"
    memory.inbox_accept([str(made.id)])
    assert memory.get(old).state == "superseded"


def test_decision_can_be_undone_and_repeated(memory: Trivet) -> None:
    id, other = proposed(memory, PORT), proposed(memory, "The canteen opens at eleven.")
    stored = str(memory.inbox_accept([id])[0].stored)
    memory.inbox_reject([other])
    reopened = memory.inbox_reopen([id, other])
    assert [(one.state, one.decided_at) for one in reopened] == [("waiting", None)] * 2
    assert memory.get(stored).state == "deleted"
    assert memory.inbox_list().total == 2
    memory.inbox_edit(id, content=OTHER)
    memory.inbox_reject([id])
    assert memory.inbox_accept([id])[0].stored == stored, "the same memory as before"
    assert [(one.content, one.state) for one in memory.list().memories] == [(OTHER, "active")]


def test_undoing_supersession_removes_its_link(memory: Trivet) -> None:
    old = memory.remember(PORT).id
    id = proposed(memory, OTHER)
    (accepted,) = memory.inbox_accept([id])
    memory.inbox_reopen([id])
    assert memory.get(old).state == "active"
    assert memory.links(old) == ()
    assert memory.inbox_accept([id])[0].stored == accepted.stored
    assert memory.get(old).state == "superseded"


def test_update_is_undone_unless_memory_changed_since(memory: Trivet) -> None:
    old = memory.remember(PORT).id
    id = proposed(memory, OTHER, action="update", memory=old)
    memory.inbox_accept([id])
    memory.edit(old, tags=["kept"])
    memory.inbox_reopen([id])
    assert (memory.get(old).content, memory.get(old).tags) == (PORT, ("kept",))
    memory.inbox_accept([id])
    memory.edit(old, content="Staging is gone.")
    with pytest.raises(Conflict, match="was changed since"):
        memory.inbox_reopen([id])
    assert memory.inbox_show(id).state == "accepted"


def test_accept_is_all_or_nothing(memory: Trivet) -> None:
    old = memory.remember(PORT).id
    good, bad = proposed(memory, "The canteen opens at eleven."), proposed(memory, OTHER)
    memory.forget(old)
    with pytest.raises(Conflict, match="was forgotten"):
        memory.inbox_accept([good, bad])
    assert memory.list().total == 0
    assert memory.inbox_show(good).state == "waiting"


def test_proposal_of_nothing_cannot_be_accepted(memory: Trivet) -> None:
    id = proposed(memory, PORT, action="nothing")
    with pytest.raises(Conflict, match="--action add"):
        memory.inbox_accept([id])
    memory.inbox_edit(id, action="add")
    assert memory.inbox_accept([id])[0].stored


def test_edit_before_accept(memory: Trivet) -> None:
    id = proposed(memory, PORT)
    edited = memory.inbox_edit(id, content=OTHER, category="projects", tags=["net"])
    assert (edited.content, edited.category, edited.tags) == (OTHER, "projects", ("net",))
    (accepted,) = memory.inbox_accept([id])
    assert memory.get(str(accepted.stored)).content == OTHER
    with pytest.raises(Conflict, match="was already accepted"):
        memory.inbox_edit(id, content=PORT)


def test_rejected_proposal_is_not_repeated_but_can_be_accepted(memory: Trivet) -> None:
    id = proposed(memory, PORT)
    assert memory.inbox_reject([id])[0].state == "rejected"
    assert (
        memory.inbox_propose("the staging database listens on port 6543").status
        == "rejected before"
    )
    assert (
        memory.inbox_propose("Our staging database listens on port 6543").status
        == "rejected before"
    )
    assert memory.inbox_list(state="rejected").total == 1
    assert memory.inbox_accept([id])[0].state == "accepted"
    with pytest.raises(Conflict, match="trivet forget"):
        memory.inbox_reject([id])


def test_forgotten_accepted_proposal_is_not_repeated(memory: Trivet) -> None:
    (accepted,) = memory.inbox_accept([proposed(memory, PORT)])
    memory.forget(str(accepted.stored))
    assert memory.inbox_propose(PORT).status == "stored already"


@pytest.mark.parametrize(
    ("statement", "stored", "same"),
    [
        ("We never deploy on Fridays.", "we never deploy on fridays", True),
        ("The linter runs before every commit.", "Before every commit: the linter runs.", False),
        ("We deploy on Mondays.", "We deploy on Tuesdays.", False),
        ("Always run the linter first.", "Never run the linter first.", False),
        ("I prefer tabs over spaces.", "I prefer spaces over tabs.", False),
        ("The port is 6543.", "The port is 6544.", False),
        ("User: I prefer tabs over spaces.", "I prefer tabs over spaces.", True),
    ],
)
def test_same_statement_is_recognized(
    memory: Trivet, statement: str, stored: str, same: bool
) -> None:
    memory.remember(stored)
    assert (memory.inbox_propose(statement).status == "stored already") == same


def test_paraphrase_is_recognized_by_meaning(opened: Opened) -> None:
    memory = opened(embedder="bundled")
    memory.remember("I prefer pnpm over npm.")
    memory.drain()
    assert memory.inbox_propose("I like pnpm better than npm.").status == "stored already"
    assert memory.inbox_propose("I prefer npm over pnpm.").status == "waiting"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": " "}, "content: the text is empty"),
        ({"content": "x", "category": "nonsense"}, "nonsense"),
        ({"content": "x", "action": "update"}, "needs the id of a memory"),
        ({"content": "<private>all of it</private>"}, "nothing is left"),
        ({"content": "x", "kind": "gossip"}, "kind"),
    ],
)
def test_invalid_proposals_are_refused(
    memory: Trivet, fields: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        memory.inbox_propose(**fields)  # type: ignore[arg-type]
    assert memory.inbox_list().total == 0


def test_unknown_proposal_or_memory(memory: Trivet) -> None:
    with pytest.raises(NotFound, match="trivet inbox"):
        memory.inbox_show(new_id())
    with pytest.raises(NotFound):
        memory.inbox_propose("x y z", action="update", memory=new_id())


def test_store_owner_cannot_decide_for_users(memory: Trivet) -> None:
    memory.engine.store.accounts.add_user("ana", "writer")
    caller = Caller(
        tenant="default", user="ana", role="writer", key="k", rights=frozenset(("read", "write"))
    )
    id = proposed(memory.acting_as(caller), PORT)
    with pytest.raises(Forbidden, match="belongs to ana"):
        memory.inbox_accept([id])
    assert memory.acting_as(caller).inbox_accept([id])[0].stored


def test_reader_cannot_propose(memory: Trivet) -> None:
    memory.engine.store.accounts.add_user("rea", "reader")
    caller = Caller(
        tenant="default", user="rea", role="reader", key="k", rights=frozenset(("read",))
    )
    with pytest.raises(Forbidden):
        memory.acting_as(caller).inbox_propose(PORT)


def test_command_line(memory: Trivet, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = proposed(memory, PORT), proposed(memory, "The canteen opens at eleven.")
    memory.close()
    monkeypatch.setenv("TRIVET_PATH", str(path))
    monkeypatch.setenv("TRIVET_EMBEDDER", "none")
    trivet = CommandLine(monkeypatch)
    listed = trivet("inbox")
    assert listed.status == 0, listed.err
    assert first in listed.out
    assert "canteen" in listed.out
    assert trivet.json("inbox")["total"] == 2
    assert trivet("inbox", "edit", first, "--content", "Port 6545 it is.").status == 0
    accepted = trivet.json("inbox", "accept", first)
    assert trivet("get", accepted[0]["stored"]).out.startswith("Port 6545 it is.")
    assert trivet("inbox", "reject", second).status == 0
    assert "No proposals wait." in trivet("inbox").out
    refused = trivet("inbox", "accept", new_id())
    assert refused.status != 0
    assert "There is no proposal" in refused.err
    assert "capture_llm" in trivet("inbox", "curate").err


def test_concurrent_proposals_of_same_text_wait_once(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Propose the text from another process during the similarity search."""
    memory, other = opened(), opened()
    near = propose.near

    def propose_meanwhile(engine: Engine, text: str) -> tuple[NearMemory, ...]:
        monkeypatch.setattr(propose, "near", near)
        assert other.inbox_propose(PORT).status == "waiting"
        found: tuple[NearMemory, ...] = near(engine, text)
        return found

    monkeypatch.setattr(propose, "near", propose_meanwhile)
    assert memory.inbox_propose(PORT).status == "waits already"
    assert memory.inbox_list().total == 1
